// The button that switches between light and dark. The choice is kept in this browser.
import { icon } from "./dom.js";

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function current() {
  return root.dataset.theme || (prefersDark.matches ? "dark" : "light");
}

export function installThemeToggle(button) {
  const show = () => {
    const other = current() === "dark" ? "light" : "dark";
    button.replaceChildren(icon(other === "dark" ? "moon" : "sun"));
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
    button.title = `Switch to the ${other} theme`;
  };
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("icefall-theme", root.dataset.theme);
    } catch {
      // then it holds until the page is closed
    }
    show();
  });
  prefersDark.addEventListener("change", show);
  show();
}
