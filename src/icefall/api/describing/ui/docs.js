// Starts Swagger UI on this listener's document: with the address of this page as the server, a search through all
// operations, and requests as curl, Python and JavaScript.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

const quoted = (text) => JSON.stringify(String(text));

const parts = (request) => {
  const headers = request.get("headers");
  return {
    url: request.get("url"),
    method: (request.get("method") || "GET").toUpperCase(),
    headers: headers ? headers.toJS() : {},
    body: request.get("body"),
  };
};

const bodyText = (body) => (typeof body === "string" ? body : JSON.stringify(body && body.toJS ? body.toJS() : body));

const python = (request) => {
  const { url, method, headers, body } = parts(request);
  const lines = ["import json", "import urllib.request", "", "request = urllib.request.Request(", `    ${quoted(url)},`];
  if (body) lines.push(`    data=${quoted(bodyText(body))}.encode(),`);
  lines.push(`    headers=${JSON.stringify(headers)},`, `    method=${quoted(method)},`, ")");
  lines.push("with urllib.request.urlopen(request) as answer:", "    print(json.load(answer))");
  return lines.join("\n");
};

const javascript = (request) => {
  const { url, method, headers, body } = parts(request);
  const options = { method, headers };
  if (body) options.body = bodyText(body);
  const shown = JSON.stringify(options, null, 2);
  return `const answer = await fetch(${quoted(url)}, ${shown});\nconsole.log(await answer.json());`;
};

const textOf = (operation) => {
  const described = operation.get("operation");
  const words = ["summary", "description", "operationId"].map((name) => described.get(name) || "");
  const named = (described.get("parameters") || []).map((one) => one.get("name") || "");
  return [operation.get("path"), operation.get("method"), ...words, ...named].join(" ").toLowerCase();
};

// Swagger UI's own filter compares the names of tags only.
const search = (groups, phrase) => {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (operation) => words.every((word) => textOf(operation).includes(word));
  return groups
    .map((group) => group.set("operations", group.get("operations").filter(fits)))
    .filter((group) => group.get("operations").size > 0);
};

const start = async () => {
  const spec = await (await fetch("openapi.json")).json();
  const here = new URL(".", window.location.href).href.replace(/\/$/, "");
  const others = (spec.servers || []).filter((one) => one.url !== here);
  spec.servers = [{ url: here, description: "Where this page comes from." }, ...others];
  window.ui = window.SwaggerUIBundle({
    spec,
    dom_id: "#docs",
    displayRequestDuration: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    requestSnippetsEnabled: true,
    requestSnippets: {
      defaultExpanded: true,
      languages: ["curl_bash", "python", "javascript"],
      generators: {
        curl_bash: { title: "curl", syntax: "bash" },
        python: { title: "Python", syntax: "python" },
        javascript: { title: "JavaScript", syntax: "javascript" },
      },
    },
    plugins: [
      { fn: { opsFilter: search, requestSnippetGenerator_python: python, requestSnippetGenerator_javascript: javascript } },
    ],
  });
  new MutationObserver(name).observe(document.getElementById("docs"), { childList: true, subtree: true });
  name();
};

// What Swagger UI leaves out for those who use a keyboard or a screen reader: by selector, the attributes to set.
const ATTRIBUTES = {
  ".operation-filter-input": { "aria-label": "Search endpoints", placeholder: "Search endpoints: path, words, parameter" },
  "#servers": { "aria-label": "Server" },
  ".copy-to-clipboard button": { "aria-label": "Copy" },
  ".microlight, .highlight-code pre, .curl": { tabindex: "0" },
};

const name = () => {
  for (const [selector, attributes] of Object.entries(ATTRIBUTES)) {
    for (const one of document.querySelectorAll(selector)) {
      for (const [key, value] of Object.entries(attributes)) {
        if (one.getAttribute(key) !== value) one.setAttribute(key, value);
      }
    }
  }
};

start();
