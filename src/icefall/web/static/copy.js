// A button that copies a text.
import { announce, h, icon } from "./dom.js";

export function copyButton(text, what) {
  const button = h(
    "button.copy",
    { type: "button", "aria-label": `Copy ${what}`, title: `Copy ${what}` },
    icon("copy"),
  );
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // without a secure context there is no clipboard interface
      const box = h("textarea", { class: "hidden" }, text);
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
      button.focus();
    }
    button.replaceChildren(icon("check"));
    announce(`Copied ${what}`);
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}
