// Which view is shown, and an address that leads back to it: view, class, node, how nodes are judged, and the list.

import { el, byId, button } from "./dom.js";
import { names, on, state, tell } from "./state.js";
import { say } from "./status.js";

const VIEWS = { find: "Find", judge: "Judge", list: "List", map: "Map", new: "New nodes", history: "History" };
const bar = byId("views");

const narrow = matchMedia("(max-width: 1000px)");

// Until somebody chooses: the map while there is no class, the next question when there is one.
export const shown = () =>
  state.view ?? (names().length ? "judge" : state.model?.map === false || narrow.matches ? "find" : "map");

export function show(view, focus = false) {
  state.view = view;
  tell("view");
  if (focus) byId(`tab-${view}`).focus();
}

function tabs() {
  const here = shown();
  bar.replaceChildren(
    el(
      "div",
      { role: "tablist", "aria-label": "Views" },
      Object.entries(VIEWS).map(([view, title]) =>
        button(title, () => show(view), {
          role: "tab",
          id: `tab-${view}`,
          "aria-selected": String(view === here),
          "aria-controls": view,
          tabindex: view === here ? "0" : "-1",
        }),
      ),
    ),
    button("Copy link", copy, { class: "quiet small", title: "An address that leads back to what you see" }),
  );
}

function draw() {
  const here = shown();
  document.body.dataset.view = here;
  document.body.classList.toggle("fresh", names().length === 0);
  const focused = document.activeElement?.id;
  tabs();
  if (focused?.startsWith("tab-")) byId(focused)?.focus();
  for (const view of Object.keys(VIEWS))
    if (view !== "find") byId(view).hidden = view !== here && !(here === "find" && view === "judge");
  if (state.model) remember();
}

bar.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step || event.target.getAttribute("role") !== "tab") return;
  event.preventDefault();
  const there = Object.keys(VIEWS).filter((view) => byId(`tab-${view}`).checkVisibility());
  show(there[(there.indexOf(shown()) + step + there.length) % there.length], true);
});

// --- the address ---

// What another part of the page has in the address: `write` adds it, `read` takes it up.
const parts = [];
export const inAddress = (write, read) => parts.push({ write, read });

// A view that nobody chose is not kept over a reload: the one that suits may be another then.
function address(view = state.view) {
  const { active, node, options, version } = state;
  const said = new URLSearchParams(view ? { view } : {});
  if (active !== null) said.set("class", active);
  if (node) said.set("node", node.node);
  said.set("threshold", options.threshold);
  said.set("open", Number(options.openSet));
  said.set("together", Number(options.transductive));
  for (const { write } of parts) write(said);
  if (version) said.set("state", version);
  return `#${said}`;
}

function remember() {
  history.replaceState(null, "", address());
}

async function copy() {
  const link = location.origin + location.pathname + address(shown());
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied. It leads back to this view, class, node, threshold and list.");
  } catch {
    prompt("Copy this link:", link);
  }
}

// What the address asks for; what it does not say, or says wrongly, stays as it is.
export function linked() {
  const said = new URLSearchParams(location.hash.slice(1));
  const threshold = Number(said.get("threshold"));
  if (said.get("view") in VIEWS) state.view = said.get("view");
  if (threshold >= 0.01 && threshold <= 0.99) state.options.threshold = threshold;
  if (said.has("open")) state.options.openSet = state.model.open_set && said.get("open") === "1";
  if (said.has("together")) state.options.transductive = state.model.modes.length > 1 && said.get("together") === "1";
  for (const { read } of parts) read(said);
  return { class: said.get("class"), node: said.get("node"), version: said.get("state") };
}

on("model view classes", draw);
on("active node options list", () => state.model && remember());
