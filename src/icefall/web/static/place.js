// Where a reader is on a page, kept in its address so that Back returns there: how many pages of each list were opened,
// and how far the window was scrolled when a link was followed.
const PAGES_MAX = 40; // of a list, read again on the way back
const SCROLL = "y";

const keyOf = (label) => `pages-${label.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;

function query() {
  return new URLSearchParams(location.hash.split("?")[1] || "");
}

function keep(name, kept) {
  const address = location.hash.split("?")[0] || "#/";
  const all = query();
  kept ? all.set(name, kept) : all.delete(name);
  history.replaceState(null, "", `${address}${String(all) ? `?${all}` : ""}`);
}

// How many pages of a list the address asks for, one without it.
export function pagesOf(label) {
  const wanted = Number(query().get(keyOf(label)));
  return Number.isInteger(wanted) && wanted > 1 ? Math.min(wanted, PAGES_MAX) : 1;
}

export function keepPages(label, count) {
  keep(keyOf(label), count > 1 ? String(count) : "");
}

// Links inside a page lead away from it: the place is kept first, in the entry of the history that Back returns to.
export function keepPlaces(main) {
  main.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && !event.defaultPrevented) keep(SCROLL, scrollY > 0 ? String(Math.round(scrollY)) : "");
  });
}

// Scrolls to the place that the address names, when everything on the page has loaded; a reader who scrolls first is
// left alone. `signal`: the page is left. Returns whether there is such a place.
export function restorePlace(main, signal) {
  const wanted = Number(query().get(SCROLL));
  if (!Number.isInteger(wanted) || wanted <= 0) return false;
  keep(SCROLL, ""); // of this visit: the next click keeps another
  const stop = new AbortController();
  const done = () => {
    stop.abort();
    watch.disconnect();
  };
  const go = () => {
    if (main.querySelector("[aria-busy]") && main.scrollHeight < wanted + innerHeight) return;
    scrollTo(0, wanted);
    if (!main.querySelector("[aria-busy]")) done();
  };
  const watch = new MutationObserver(go);
  watch.observe(main, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-busy"] });
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"])
    addEventListener(kind, done, { signal: stop.signal, passive: true });
  signal.addEventListener("abort", done);
  go();
  return true;
}
