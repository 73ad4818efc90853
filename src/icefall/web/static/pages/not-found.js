import { h } from "../dom.js";
import { advice } from "../advice.js";
import { empty, header } from "../parts.js";

export async function render({ params }) {
  return {
    title: "Not found",
    content: h(
      "div.page",
      {},
      header("Icefall", "There is no such page"),
      h(
        "section.card",
        {},
        empty("The address may be mistyped, or the page needs an interface that this installation does not offer."),
        advice(404, params),
      ),
    ),
  };
}
