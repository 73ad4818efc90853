"""What axe-core is asked about a page. Most of its time goes to the contrast of texts and to repeated parts: so of what
looks alike a few are measured, and a second look asks only for what can be different in another look."""

from importlib.resources import files

# Loaded once into each document.
AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
PREPARE = """() => {
    axe.configure({ rules: [{ id: "color-contrast", selector: "[data-measured]" }] });
    window.of_axe = { shown: new WeakSet(), kinds: new Map() };
}"""

# What colours, widths, or parts that are hidden in some look can change: contrast, places that scroll, and names.
OF_A_LOOK = [
    "color-contrast",
    "link-in-text-block",
    "scrollable-region-focusable",
    "aria-hidden-focus",
    "nested-interactive",
    "aria-command-name",
    "aria-input-field-name",
    "aria-toggle-field-name",
    "button-name",
    "image-alt",
    "input-button-name",
    "label",
    "link-name",
    "select-name",
    "summary-name",
    "svg-img-alt",
]

# The argument is the rules to ask for, or null for all of them. It is all of them in any case where an element is shown
# that was not shown when all of them were asked. Long tables are made of rows alike: they keep the first ones
# meanwhile. Texts of the same style on the same grounds have the same contrast: of each kind two are measured, on
# whatever page of the program they are, as long as it is not loaded anew.
FIND = """async (rules) => {
    const isShown = (one) => one.checkVisibility({ visibilityProperty: true });
    const removed = [...document.querySelectorAll("tbody tr:nth-child(n+4)")]
        .filter((one) => !one.contains(document.activeElement))
        .map((one) => { const mark = document.createComment(""); one.replaceWith(mark); return [mark, one]; });
    const shown = [...document.body.querySelectorAll("*")].filter(isShown);
    const isWhole = !rules || shown.some((one) => !window.of_axe.shown.has(one));

    const grounds = new Map([[null, ""]]);
    const groundOf = (one) => {
        if (!grounds.has(one)) {
            const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(one);
            const own = [backgroundColor, backgroundImage, opacity, filter].join();
            const above = groundOf(one.parentElement);
            grounds.set(one, own === "rgba(0, 0, 0, 0),none,1,none" ? above : `${above}>${own}`);
        }
        return grounds.get(one);
    };
    const { kinds } = window.of_axe, measured = [];
    for (const one of shown) {
        const hasText = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (!hasText && !one.matches("input, select, textarea")) continue;
        const { color, fontSize, fontWeight, textShadow } = getComputedStyle(one);
        const kind = [one.localName, one.classList, color, fontSize, fontWeight, textShadow, groundOf(one)].join();
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (kinds.get(kind) <= 2) measured.push(one);
    }
    measured.forEach((one) => one.setAttribute("data-measured", ""));
    try {
        const runOnly = isWhole ? undefined : { type: "rule", values: rules };
        const { violations } = await axe.run(document, { resultTypes: ["violations"], runOnly });
        if (isWhole) window.of_axe.shown = new WeakSet(shown);
        return violations.filter((one) => ["serious", "critical"].includes(one.impact))
            .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
    } finally {
        measured.forEach((one) => one.removeAttribute("data-measured"));
        for (const [mark, one] of removed) mark.replaceWith(one);
    }
}"""
