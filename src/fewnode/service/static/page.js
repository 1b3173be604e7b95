// The page of `fewnode serve`: the views around the question, what went wrong, and the last change.

import { render } from "./vendored/preact.js";
import * as desk from "./desk.js";
import { attempt, calm, names, shown, state } from "./desk.js";
import { Find } from "./find.js";
import { button, html, later, number, plural } from "./parts.js";
import * as service from "./service.js";

const VIEWS = { find: "Find", judge: "Judge", list: "List", map: "Map", new: "New nodes", history: "History" };
const [Judge, List, Picture, NewNodes, History, Node] = [
  later(() => import("./judge.js"), "default"),
  later(() => import("./list.js"), "default"),
  later(() => import("./map.js"), "default"),
  later(() => import("./more.js"), "NewNodes"),
  later(() => import("./more.js"), "History"),
  later(() => import("./node.js"), "default"),
];

function Header() {
  const { model } = state;
  const what = model?.describes ? "Find all nodes of a class, from an example or a sentence." : "Find all nodes of a class from a few examples.";
  const facts = model && `${model.data.name} · ${plural(model.data.nodes, "node")}, ${plural(model.data.edges, "edge")} · ${model.method_name}${
    model.trained ? `, trained ${model.way}-way ${model.shot}-shot` : ", without training"}`;
  return html`<header><p class="brand">fewnode</p><h1>${what}</h1>
    <p id="dataset" class="soft">${facts ?? (state.waiting || "Reading the network…")}</p></header>`;
}

async function copy() {
  const address = location.origin + location.pathname + desk.address(shown());
  try {
    await navigator.clipboard.writeText(address);
    desk.say("The link is copied. It leads back to this view, class, node, threshold and list.");
  } catch {
    prompt("Copy this link:", address);
  }
}

const go = (view) => (desk.show(view), setTimeout(() => document.getElementById(`tab-${view}`)?.focus()));
function walk(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step || event.target.getAttribute("role") !== "tab") return;
  event.preventDefault();
  const there = Object.keys(VIEWS).filter((view) => document.getElementById(`tab-${view}`).checkVisibility());
  go(there[(there.indexOf(shown()) + step + there.length) % there.length]);
}

const Tabs = () => html`<nav id="views" aria-label="Views" onkeydown=${walk}><div role="tablist" aria-label="Views">
  ${Object.entries(VIEWS).map(([view, title]) => button(title, () => desk.show(view), {
    role: "tab", id: `tab-${view}`, "aria-selected": String(view === shown()), "aria-controls": view === shown() ? view : null,
    tabindex: view === shown() ? "0" : "-1", key: view }))}</div>
  ${button("Copy link", copy, { class: "quiet small", title: "An address that leads back to what you see" })}</nav>`;

function Alert() {
  const { message, hint, action } = state.alert ?? {};
  return html`<div id="alert" role="alert" hidden=${!state.alert}>${state.alert && html`<p><strong>${message}</strong> ${hint}</p>
    <p class="row">${action && button(...action)}${button("Dismiss", calm, { class: "quiet" })}</p>`}</div>`;
}

function Story() {
  if (!state.model || names().length) return null;
  const start = state.model.describes ? "Start a class with it, or say in a sentence what the class is." : "Start a class with it.";
  const examples = state.examples ?? [];
  return html`<section id="story" aria-label="How it works"><ol>
    <li><strong>Point.</strong> Find one node of what you look for: by name, by words, on the map, or in a list you have.</li>
    <li><strong>Name.</strong> ${start}</li><li><strong>Judge.</strong> Say yes or no to a few others; both teach.</li></ol>
    ${examples.length > 1 && html`<p class="row">${button("Try it", () => attempt(() => desk.begin(examples.map((s) => [s.class, [s.node]]))), { class: "solid" })}
      <span class="soft small grow">starts ${examples.map((s) => s.class).join(", ")} with one node each.</span></p>`}</section>`;
}

function Work() {
  const here = shown();
  if (!state.model) return html`<p class="big">${state.waiting || "Reading the network…"}</p>`;
  const View = { judge: Judge, list: List, map: Picture, new: NewNodes, history: History, find: names().length ? Judge : null }[here];
  return html`<${Story} />${View && html`<section id=${here === "find" ? "judge" : here} role="tabpanel" aria-labelledby="tab-${here}" key=${here}><${View} /></section>`}`;
}

const clock = (when) => new Date(when).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
function Footer() {
  const { journal } = state;
  const last = journal?.entries.find((e) => !e.undone);
  const move = (way, text, letter) =>
    button(text, () => attempt(() => desk.step(way)), { class: "plain", disabled: !journal?.[way], "aria-keyshortcuts": letter, "data-letter": letter });
  const lost = service.unsaved();
  return html`<footer><div id="journal" role="group" aria-label="Journal">${move("undo", "Undo", "u")}${move("redo", "Redo", "r")}
    ${lost > 0 && html`<strong class="unsaved">${number(lost)} unsaved</strong>`}
    <span class="last">${last ? [html`<span class="soft">${clock(last.when)} </span>`, last.what] : "Nothing was said yet."}</span></div>
    <p id="status" role="status" aria-live="polite">${state.said}</p></footer>`;
}

const App = () => html`<a class="skip" href="#search">Skip to the search</a><${Header} /><${Tabs} /><${Alert} />
  <main>${state.model && html`<${Find} />`}<div id="work"><${Work} /></div>
    ${state.node && html`<aside aria-label="Details"><${Node} /></aside>`}</main><${Footer} />`;

desk.onPaint(() => {
  const { model, away } = state;
  document.body.dataset.view = shown();
  document.body.classList.toggle("fresh", names().length === 0);
  document.body.classList.toggle("away", away);
  if (model) document.title = `fewnode · ${model.data.name}`;
  if (model && names().length) import("./judge.js"); // its keys work on every view
  render(html`<${App} />`, document.body);
  if (model) history.replaceState(null, "", desk.address());
});

desk.paint();
attempt(desk.open);
desk.poll();
