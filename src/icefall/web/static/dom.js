// Elements. Whatever a chain says becomes a text node or a checked attribute here, never markup.
const SVG = "http://www.w3.org/2000/svg";
// Marks that turn the direction of what follows them, up to the end of a line: a name could so rewrite a sentence.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;
const READ = ["title", "alt", "aria-label", "aria-description", "placeholder"]; // attributes that people read

// Text that nothing turns around. In the place of each such mark stands the sign of a character that is not shown.
export const plain = (text) => String(text).replace(TURNS, "\ufffd");

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "href") element.setAttribute("href", safeHref(value));
    else if (READ.includes(name)) element.setAttribute(name, plain(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : plain(child));
  }
  return element;
}

// h("div.card.wide", {id: "x"}, "text", node, [more])
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Only addresses that cannot run anything: a script in a link would be one of this page.
function safeHref(text) {
  const value = String(text);
  if (value.startsWith("#")) return value;
  try {
    const url = new URL(value, document.baseURI);
    return ["http:", "https:"].includes(url.protocol) ? url.href : "#/";
  } catch {
    return "#/";
  }
}

const ICONS = {
  sun: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10ZM12 1v3M12 20v3M1 12h3M20 12h3M4.2 4.2l2.1 2.1M17.7 17.7l2.1 2.1M4.2 19.8l2.1-2.1M17.7 6.3l2.1-2.1",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "m5 13 4 4L19 7",
  arrow: "M5 12h14M13 6l6 6-6 6",
  cross: "m6 6 12 12M18 6 6 18",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", width: 16, height: 16, class: "icon", "aria-hidden": "true" },
    svg("path", { d: ICONS[name] }),
  );
}

export function announce(text) {
  document.getElementById("announcer").textContent = plain(text);
}
