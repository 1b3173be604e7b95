// The search box: a combobox whose list is walked with the arrow keys.

import * as api from "./api.js";
import { look } from "./actions.js";
import { byId, el, mark, number, plural } from "./dom.js";
import { classOf, on, slot, state } from "./state.js";
import { attempt } from "./status.js";

const PAGE = 20;
const PAUSE = 120;

const input = byId("search");
const list = byId("found");
const note = byId("search-note");
let found = [];
let total = 0;
let at = -1;
let asked = 0;
let timer = 0;

function option({ node, class: known, degree }, i) {
  const own = classOf(node);
  return el(
    "li",
    { role: "option", id: `found-${i}`, "aria-selected": String(i === at), onclick: () => choose(i) },
    el("span", { class: "name" }, own !== null && mark(slot(own)), node),
    el("span", { class: "soft small" }, [known, plural(degree, "neighbour")].filter(Boolean).join(" · ")),
  );
}

function show() {
  list.replaceChildren(...found.map(option));
  list.hidden = found.length === 0;
  input.setAttribute("aria-expanded", String(!list.hidden));
  if (input.value.trim() === "") note.textContent = "";
  else if (total === 0) note.textContent = "No node has that in its name.";
  else
    note.textContent = `${plural(total, "node")}${total > found.length ? `; the first ${number(found.length)} are listed` : ""}.`;
  point(at);
}

function point(i) {
  at = Math.min(i, found.length - 1);
  [...list.children].forEach((row, j) => row.setAttribute("aria-selected", String(j === at)));
  if (at < 0) return input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", `found-${at}`);
  list.children[at].scrollIntoView({ block: "nearest" });
}

async function ask(more) {
  const mine = ++asked;
  const text = input.value.trim();
  if (text === "") return clear();
  note.textContent = "Searching…";
  const answer = await api.search(text, more ? found.length : 0, PAGE);
  if (mine !== asked) return;
  found = more ? [...found, ...answer.nodes] : answer.nodes;
  total = answer.total;
  if (!more) at = -1;
  show();
}

function clear() {
  asked++;
  found = [];
  total = 0;
  at = -1;
  show();
  note.textContent = "";
}

async function choose(i) {
  const { node } = found[i];
  clear();
  await attempt(() => look(node));
}

function more() {
  if (found.length < total) return attempt(() => ask(true));
}

input.addEventListener("focus", () => input.select()); // what was sought before is not in the way
input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => attempt(() => ask(false)), PAUSE);
});
input.addEventListener("keydown", async (event) => {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    if (list.hidden) return attempt(() => ask(false));
    if (at === found.length - 1) await more();
    point(at + 1);
  } else if (event.key === "ArrowUp") {
    event.preventDefault();
    point(Math.max(at - 1, -1));
  } else if (event.key === "Enter" && found.length) {
    event.preventDefault();
    choose(Math.max(at, 0));
  } else if (event.key === "Escape") {
    if (!list.hidden) event.preventDefault(); // the first Escape closes the list, the next empties the box
    clear();
  }
});
list.addEventListener("scroll", () => {
  if (list.scrollTop + list.clientHeight > list.scrollHeight - 20) more();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) clear();
});
on("classes", () => found.length && show());
