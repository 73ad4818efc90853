// Suggestions below the search box while one types: one call of the search, after a short pause, for the newest text.
import { announce, h } from "./dom.js";
import { find } from "./finding.js";
import { badge, clip } from "./parts.js";

const PAUSE_MS = 100;
const SHOWN_MAX = 12;

// The box is a combobox, the list its listbox: the keyboard stays in the box and moves the marked suggestion.
export function installSuggestions(input) {
  const list = h("div.suggestions", { id: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true });
  input.parentElement.append(list);
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-controls": list.id,
    "aria-expanded": "false",
  }))
    input.setAttribute(name, value);
  let reading = new AbortController();
  let pause = 0;
  let marked = -1;
  const options = () => [...list.querySelectorAll("[role=option]")];

  function mark(at) {
    marked = at;
    options().forEach((one, index) => {
      one.setAttribute("aria-selected", String(index === at));
      if (index === at) one.scrollIntoView({ block: "nearest" });
    });
    at < 0 ? input.removeAttribute("aria-activedescendant") : input.setAttribute("aria-activedescendant", `s-${at}`);
  }

  function close() {
    clearTimeout(pause);
    reading.abort();
    mark(-1);
    list.hidden = true;
    list.replaceChildren();
    input.setAttribute("aria-expanded", "false");
  }

  function follow(href) {
    close();
    input.blur();
    location.hash = href;
  }

  async function read() {
    const text = input.value.trim();
    reading = new AbortController();
    const { signal } = reading;
    const found = await find(text, signal, SHOWN_MAX).catch(() => []); // the page of results says what fails
    if (signal.aborted || text !== input.value.trim()) return;
    const shown = found.slice(0, SHOWN_MAX);
    marked = -1;
    input.removeAttribute("aria-activedescendant");
    list.replaceChildren(...groups(shown, follow));
    list.hidden = !shown.length;
    input.setAttribute("aria-expanded", String(Boolean(shown.length)));
    announce(shown.length === 1 ? "1 suggestion" : `${shown.length} suggestions`);
  }

  input.addEventListener("input", () => {
    clearTimeout(pause);
    reading.abort();
    if (input.value.trim()) pause = setTimeout(read, PAUSE_MS);
    else close();
  });
  input.addEventListener("keydown", (event) => {
    const all = options();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) {
      event.preventDefault();
      mark(marked < 0 && step < 0 ? all.length - 1 : (marked + step + all.length) % all.length);
    } else if (event.key === "Enter" && marked >= 0) {
      event.preventDefault();
      follow(all[marked].dataset.href);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault(); // which would also empty the box
      close();
    }
  });
  input.addEventListener("blur", close);
  addEventListener("hashchange", close);
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the keyboard stays in the box
  if (document.activeElement === input && input.value.trim()) pause = setTimeout(read, PAUSE_MS);
}

function groups(found, follow) {
  const names = [...new Set(found.map((one) => one.group))];
  let at = 0;
  return names.map((name) =>
    h(
      "div",
      { role: "group", "aria-label": name },
      h("p.group", { "aria-hidden": "true" }, name),
      found
        .filter((one) => one.group === name)
        .map((one) =>
          h(
            "div.suggestion",
            {
              role: "option",
              id: `s-${at++}`,
              "aria-selected": "false",
              "data-href": one.href,
              onclick: () => follow(one.href),
            },
            badge(one.kind),
            h("strong", {}, clip(one.name, 40)),
            one.detail && h("span.mono.quiet", {}, clip(one.detail, 60)),
            one.where && h("span.quiet.where", {}, clip(one.where, 30)),
          ),
        ),
    ),
  );
}
