// Runs before the first paint, so that a chosen theme does not flash. Not a module: modules run later.
(function () {
  try {
    const chosen = localStorage.getItem("icefall-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // storage may be forbidden: then the system's preference holds
  }
})();
