// The map: every dot a node by its embedding, coloured by the class that claims it; prototypes move as classes learn.

import { look as lookAt } from "./actions.js";
import { button, byId, el, number, plural } from "./dom.js";
import { plainDots } from "./dots_2d.js";
import { glDots } from "./dots_gl.js";
import {
  claimOf,
  fetchNames,
  inside,
  knownOf,
  loadClaims,
  loadMap,
  looks,
  map,
  middles,
  nameOf,
  nearest,
} from "./map_data.js";
import { gestures } from "./map_gestures.js";
import { drawClasses, drawKnown, drawLasso, drawLooked, ring } from "./map_marks.js";
import { onClaims } from "./refresh.js";
import { choose } from "./selection.js";
import { on, state } from "./state.js";
import { attempt, say } from "./status.js";
import { shown } from "./views.js";

const PAD = 10;
const REACH = 14; // how near, in pixels, the pointer must be to a dot
const DURATION = 900;
const CLOSEST = 60; // times the whole map
const COLOURS = 6;
const MOST = 2000; // nodes of a lasso
const NAMED = 14; // classes of the data whose names are written

const panel = byId("map");
const canvas = panel.querySelector(".marks");
const below = panel.querySelector(".dots");
const tip = panel.querySelector(".tip");
const note = byId("map-note");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

const look = {
  ink: {},
  size: [0, 0],
  font: "sans-serif",
  paint: (s) => (s < 0 ? look.ink.soft : look.ink.c[s % COLOURS]),
  screen: ([x, y]) => screen(x, y),
};
let dots = null;
let scale = 1;
let view = { k: 1, x: 0, y: 0 };
let known = null; // whether the data's own classes are coloured; null: while there is no class
let labels = [];
let moving = new Map(); // class -> {from, to}
let began = 0;
let frame = 0;
let stale = true; // the dots have to be drawn again
let pointed = -1;
let lasso = false;
let drawn = []; // the lasso

// --- places ---

function fit() {
  const [w, h] = [look.size[0] - 2 * PAD, look.size[1] - 2 * PAD];
  const [sx, sy] = [view.k * w, -view.k * h];
  return { sx, ox: PAD - view.x * sx, sy, oy: PAD + (1 - view.y) * -sy };
}

function screen(x, y) {
  const { sx, ox, sy, oy } = fit();
  return [x * sx + ox, y * sy + oy];
}

function zoom(factor, [cx, cy] = [0.5, 0.5]) {
  const k = factor === 0 ? 1 : Math.min(CLOSEST, Math.max(1, view.k * factor));
  move({ k, x: view.x + cx / view.k - cx / k, y: view.y + cy / view.k - cy / k });
}

function move({ k, x, y }) {
  const bound = (offset) => Math.min(Math.max(0, offset), 1 - 1 / k);
  view = { k, x: bound(x), y: bound(y) };
  stale = true;
  request();
}

// --- drawing ---

function readInk() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  look.font = getComputedStyle(document.body).fontFamily;
  look.ink = {
    paper: value("field"),
    ink: value("ink"),
    soft: value("soft"),
    dot: value("dot"),
    focus: value("focus"),
    c: Array.from({ length: COLOURS }, (_, i) => value(`c${i}`)),
  };
  const light = dark.matches ? 0.62 : 0.5;
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
  const muted = Array.from({ length: 12 }, (_, i) => [...hue((i * 5) % 12, light), 0.5]);
  dots?.palette(
    [[...rgb(look.ink.dot), 0.4], ...muted, ...look.ink.c.map((hex) => [...rgb(hex), 0.85])],
    rgb(look.ink.paper),
  );
}

// A soft colour of the wheel: little saturation, always as light.
function hue(turn, light) {
  const angle = (2 * Math.PI * turn) / 12;
  return [0, 1, 2].map((i) => light + 0.2 * Math.cos(angle - (2 * Math.PI * i) / 3));
}

function resize() {
  const { width, height } = canvas.getBoundingClientRect();
  if (!width || !height) return;
  scale = Math.min(2, devicePixelRatio || 1);
  look.size = [width, height];
  for (const each of [canvas, below]) {
    each.width = Math.round(width * scale);
    each.height = Math.round(height * scale);
  }
  canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  stale = true;
  request();
}

function request() {
  if (!frame) frame = requestAnimationFrame(draw);
}

const ease = (t) => 1 - (1 - t) ** 3;

function draw(now) {
  frame = 0;
  if (!map.n || panel.hidden || !look.size[0]) return;
  if (stale) {
    const room = Math.sqrt((look.size[0] * look.size[1]) / map.n);
    dots.draw(fit(), look.size, scale, Math.max(1.1, Math.min(3, 0.3 * room)) * Math.min(2.2, view.k ** 0.4));
    stale = false;
  }
  const context = canvas.getContext("2d");
  const t = still.matches ? 1 : Math.min(1, (now - began) / DURATION);
  context.clearRect(0, 0, ...look.size);
  if (colouring()) drawKnown(context, look, labels);
  drawLooked(context, look);
  drawClasses(context, look, moving, ease(t));
  if (pointed >= 0) ring(context, ...screen(map.x[pointed], map.y[pointed]), 7, look.ink.focus);
  drawLasso(context, look, drawn);
  if (t < 1) request();
}

const colouring = () => known ?? state.classes.length === 0;

function recolour() {
  if (!dots) return;
  dots.looks(looks(colouring()));
  stale = true;
  request();
}

function settle() {
  const next = new Map();
  for (const { name, position, support } of state.classes)
    if (position) next.set(name, { from: moving.get(name)?.to ?? support[0]?.position ?? position, to: position });
  moving = next;
  began = performance.now();
  request();
}

// --- what is asked for ---

let loading = null;
async function load() {
  if (state.model.map === false) return;
  loading ??= loadMap();
  await loading;
  dots ??= glDots(below) ?? plainDots(below);
  readInk();
  dots.points(map.x, map.y);
  labels = middles(NAMED);
}

async function appear(current = () => true) {
  if (shown() !== "map" || !state.model) return;
  tools();
  caption();
  if (state.model.map === false) return;
  const before = map.n;
  await load();
  await loadClaims();
  if (!current()) return;
  if (before && before !== map.n) dots.points(map.x, map.y);
  resize();
  recolour();
  settle();
  caption();
}

function caption() {
  const { model } = state;
  panel.querySelector(".canvas").hidden = model.map === false;
  if (model.map === false)
    return (note.textContent = `${model.method} has no embedding of nodes: there is no map, no prototype, and no node to suggest.`);
  if (pointed >= 0) return (note.textContent = said(pointed) ?? "…");
  const how = state.classes.length
    ? "Large marks are prototypes; lines lead to their examples."
    : "Colours are classes that the data knows.";
  note.textContent = map.n ? `All ${plural(map.n, "node")}, near where they are alike. ${how}` : "Reading the map…";
}

function said(row) {
  const name = nameOf(row);
  if (name === null) return null;
  const claim = claimOf(row);
  const label = knownOf(row);
  return `${name}${claim === null ? "" : ` · ${claim}`}${label === null ? "" : ` (in the data: ${label})`}`;
}

// --- tools ---

function tools() {
  const toggle = (text, on, act, title) =>
    button(text, act, { class: "plain small", "aria-pressed": String(on), title });
  byId("map-tools").replaceChildren(
    toggle("Lasso", lasso, () => ((lasso = !lasso), tools()), "Draw around nodes to select them; or hold Shift"),
    button("Select what is in view", () => attempt(selectView), { class: "plain small" }),
    toggle(
      "Colours of the data",
      colouring(),
      () => ((known = !colouring()), recolour(), tools()),
      "Muted colours for classes that the data knows",
    ),
    el("span", { class: "grow" }),
    el(
      "span",
      { class: "zoom", role: "group", "aria-label": "Zoom of the map" },
      button("+", () => zoom(1.6), { class: "plain small", "aria-label": "Zoom in" }),
      button("−", () => zoom(0.625), { class: "plain small", "aria-label": "Zoom out" }),
      button("⤢", () => zoom(0), { class: "plain small", "aria-label": "Show the whole map" }),
    ),
  );
}

async function select(polygon, title) {
  const rows = inside(polygon, fit());
  if (!rows.length) return say("No node is inside.");
  const taken = rows.slice(0, MOST);
  const notes =
    taken.length < rows.length ? [`${number(rows.length)} are inside; the first ${number(MOST)} are taken.`] : [];
  const names = await fetchNames(taken);
  choose(
    title,
    names.map((node) => ({ node, class: null })),
    notes,
  );
}

function selectView() {
  const [w, h] = look.size;
  return select(
    [
      [0, 0],
      [w, 0],
      [w, h],
      [0, h],
    ],
    "What the map shows",
  );
}

// --- pointer and keys ---

let asked = 0;
function point(row, place = null) {
  if (row !== pointed) {
    pointed = row;
    canvas.classList.toggle("hit", row >= 0);
    request();
    clearTimeout(asked);
    if (row >= 0 && nameOf(row) === null) asked = setTimeout(() => name(row), 40);
  }
  if (row >= 0 && place) at(place);
  tell();
}

function at([x, y]) {
  tip.style.left = `${Math.min(x + 14, look.size[0] - 160)}px`;
  tip.style.top = `${y + 16 > look.size[1] - 30 ? y - 30 : y + 16}px`;
}

async function name(row) {
  await fetchNames([row]);
  if (row === pointed) tell();
}

function tell() {
  const text = pointed >= 0 ? said(pointed) : null;
  tip.hidden = text === null;
  tip.textContent = text ?? "";
  caption();
}

const share = ([x, y]) => [(x - PAD) / (look.size[0] - 2 * PAD), (y - PAD) / (look.size[1] - 2 * PAD)];

gestures(canvas, {
  lassoes: () => lasso,
  hover,
  leave: () => point(-1),
  click: (here) => {
    const [row, distance] = nearest(here, fit());
    if (distance < 2 * REACH) open(row);
  },
  draw: (polygon) => ((drawn = polygon), request()),
  select: (polygon) => attempt(() => select(polygon, "Drawn around on the map")),
  wheel: (closer, here) => zoom(closer ? 1.25 : 0.8, share(here)),
  view: () => view,
  // What was at one place is at another, and all is so many times as large as it was.
  carry: (before, from, to, factor = 1) => {
    const k = Math.min(CLOSEST, Math.max(1, before.k * factor));
    const [[ax, ay], [bx, by]] = [share(from), share(to)];
    move({ k, x: before.x + ax / before.k - bx / k, y: before.y + ay / before.k - by / k });
  },
});

function hover(here) {
  const [row, distance] = nearest(here, fit());
  point(distance < REACH ? row : -1, here);
}

const open = (row) => attempt(async () => lookAt((await fetchNames([row]))[0]));

canvas.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && pointed >= 0) return open(pointed);
  if (event.key === "+" || event.key === "-") return zoom(event.key === "+" ? 1.6 : 0.625);
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!way || !map.n) return;
  event.preventDefault();
  const from = pointed < 0 ? [look.size[0] / 2, look.size[1] / 2] : screen(map.x[pointed], map.y[pointed]);
  const ahead = (dx, dy) => dx * way[0] + dy * way[1] > Math.max(2, Math.abs(dx * way[1] + dy * way[0]));
  const [row] = nearest(from, fit(), pointed < 0 ? undefined : ahead);
  if (row >= 0) point(row, screen(map.x[row], map.y[row]));
});
canvas.addEventListener("blur", () => point(-1));

dark.addEventListener("change", () => (readInk(), recolour()));
new ResizeObserver(resize).observe(canvas);
onClaims(appear);
on("view model", () => attempt(appear));
on("classes", () => (settle(), shown() === "map" && !state.classes.length && attempt(appear)));
on("node", request);
on("network", () => (loading = null));
