// Pictures of NFTs. An <img> runs no script, whatever the file contains. What a contract embeds is shown at once; what
// lies on another host is fetched only when the reader asks for it, because that host then learns who looks.
import { h } from "./dom.js";
import { config } from "./api.js";
import { clip } from "./parts.js";

const EMBEDDED = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;
const SIZE_MAX = 2_000_000;

function webAddress(uri) {
  const text = String(uri || "").trim();
  if (EMBEDDED.test(text)) return text.length <= SIZE_MAX ? text : "";
  if (/^ipfs:\/\//i.test(text))
    return config.ipfsGateway ? config.ipfsGateway + text.slice(7).replace(/^ipfs\//, "") : "";
  if (/^https:\/\//i.test(text)) return text;
  return "";
}

function hostOf(address) {
  try {
    return new URL(address).host;
  } catch {
    return "";
  }
}

const KEY = "icefall-pictures";

function wanted(value) {
  try {
    if (value !== undefined) localStorage.setItem(KEY, value ? "yes" : "no");
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false;
  }
}

// The reader's choice for all pictures. `changed` shows them anew.
export function pictureSwitch(changed) {
  const box = h("input", { type: "checkbox", checked: wanted() });
  box.addEventListener("change", () => {
    wanted(box.checked);
    changed();
  });
  return h("label.switch", {}, box, "Load pictures from other hosts, which then see your address");
}

// `name` describes the picture for those who cannot see it; `mark` stands in its place.
export function picture(uri, name, { interactive = false, mark = "" } = {}) {
  const address = webAddress(uri);
  const box = h("div.picture", {}, mark && h("span.mark", { "aria-hidden": "true" }, mark));
  const showImage = () => {
    const image = h("img", {
      alt: clip(name || "NFT", 100),
      loading: "lazy",
      decoding: "async",
      referrerpolicy: "no-referrer",
    });
    image.addEventListener("error", () => box.replaceChildren(h("span.quiet", {}, "The picture cannot be shown")));
    image.src = address;
    box.replaceChildren(image);
  };
  if (EMBEDDED.test(address) || (hostOf(address) && wanted())) showImage();
  else if (address && hostOf(address) && interactive) {
    box.append(
      h("button", { type: "button", onclick: showImage }, "Load picture"),
      h("span.quiet", {}, `from ${clip(hostOf(address), 40)}`),
    );
  } else if (address && hostOf(address)) box.append(h("span.quiet", {}, `Picture at ${clip(hostOf(address), 40)}`));
  else box.append(h("span.quiet", {}, "No picture"));
  return box;
}
