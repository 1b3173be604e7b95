// The map: every dot a node, near those that are most like it, coloured by the class that claims it.

import { useEffect, useRef } from "./vendored/preact.js";
import { button, html, number, plural } from "./parts.js";
import { attempt, look as lookAt, onClaims, paint, say, shown, state } from "./desk.js";
import { select as choose } from "./find.js";
import {
  claimOf, drawClasses, drawKnown, drawLasso, drawLooked, fetchNames, gestures, glDots, inside, knownOf, loadClaims, loadMap, looks, map, middles,
  nameOf, nearest, ring,
} from "./map_draw.js";

const PAD = 10;
const REACH = 14; // how near, in pixels, the pointer must be to a dot
const DURATION = 900;
const CLOSEST = 60; // times the whole map
const COLOURS = 6;
const MOST = 2000; // nodes of a lasso
const NAMED = 14; // classes of the data whose names are written
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

const look = {
  ink: {}, size: [0, 0], font: "sans-serif",
  paint: (s) => (s < 0 ? look.ink.soft : look.ink.c[s % COLOURS]),
  screen: ([x, y]) => screen(x, y),
};
let [canvas, below, dots] = [null, null, null];
let scale = 1;
let view = { k: 1, x: 0, y: 0 };
let known = null; // whether the data's own classes are coloured; null: while there is no class
let labels = [];
let moving = new Map(); // class -> {from, to}
let began = 0;
let frame = 0;
let stale = true; // the dots have to be drawn again
let pointed = -1;
let tip = null; // where the tip is
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

const share = ([x, y]) => [(x - PAD) / (look.size[0] - 2 * PAD), (y - PAD) / (look.size[1] - 2 * PAD)];
const bounded = (k) => Math.min(CLOSEST, Math.max(1, k));

function zoom(factor, [cx, cy] = [0.5, 0.5]) {
  const k = factor === 0 ? 1 : bounded(view.k * factor);
  move({ k, x: view.x + cx / view.k - cx / k, y: view.y + cy / view.k - cy / k });
}

function move({ k, x, y }) {
  const bound = (offset) => Math.min(Math.max(0, offset), 1 - 1 / k);
  view = { k, x: bound(x), y: bound(y) };
  redrawn();
}

// --- drawing ---

function redrawn() {
  stale = true;
  request();
}
function request() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function readInk() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
  look.font = getComputedStyle(document.body).fontFamily;
  look.ink = { paper: value("field"), ink: value("ink"), soft: value("soft"), dot: value("dot"), focus: value("focus") };
  look.ink.c = Array.from({ length: COLOURS }, (_, i) => value(`c${i}`));
  // Soft colours of the wheel: little saturation, always as light.
  const light = dark.matches ? 0.62 : 0.5;
  const hue = (turn) => [0, 1, 2].map((i) => light + 0.2 * Math.cos((2 * Math.PI * turn) / 12 - (2 * Math.PI * i) / 3));
  const muted = Array.from({ length: 12 }, (_, i) => [...hue((i * 5) % 12), 0.5]);
  dots?.palette([[...rgb(look.ink.dot), 0.4], ...muted, ...look.ink.c.map((hex) => [...rgb(hex), 0.85])]);
}

function resize() {
  const { width, height } = canvas.getBoundingClientRect();
  if (!width || !height) return;
  scale = Math.min(2, devicePixelRatio || 1);
  look.size = [width, height];
  for (const each of [canvas, below]) [each.width, each.height] = [Math.round(width * scale), Math.round(height * scale)];
  canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  redrawn();
}

function draw(now) {
  frame = 0;
  if (!map.n || !canvas?.isConnected || !look.size[0]) return;
  if (stale) {
    const room = Math.sqrt((look.size[0] * look.size[1]) / map.n);
    dots?.draw(fit(), look.size, scale, Math.max(1.1, Math.min(3, 0.3 * room)) * Math.min(2.2, view.k ** 0.4));
    stale = false;
  }
  const context = canvas.getContext("2d");
  const t = still.matches ? 1 : Math.min(1, (now - began) / DURATION);
  context.clearRect(0, 0, ...look.size);
  if (colouring()) drawKnown(context, look, labels);
  drawLooked(context, look);
  drawClasses(context, look, moving, 1 - (1 - t) ** 3);
  if (pointed >= 0) ring(context, ...screen(map.x[pointed], map.y[pointed]), 7, look.ink.focus);
  drawLasso(context, look, drawn);
  if (t < 1) request();
}

const colouring = () => known ?? state.classes.length === 0;

function recolour() {
  dots?.looks(looks(colouring()));
  redrawn();
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

let placed = null; // the version of the places: they are others when nodes came, or when the layout is ready
async function appear(current = () => true) {
  if (shown() !== "map" || !canvas || !state.model.map) return;
  const { data, layout } = state.model;
  if (placed !== `${data.nodes} ${layout}`) {
    await loadMap();
    placed = `${data.nodes} ${layout}`;
    dots?.points(map.x, map.y);
    labels = middles(NAMED);
  }
  await loadClaims();
  if (!current()) return;
  recolour();
  settle();
  paint();
}
onClaims(appear);

function caption() {
  if (pointed >= 0) return said(pointed) ?? "…";
  if (!map.n) return "Reading the map…";
  const how = state.classes.length ? "Large marks are prototypes; lines lead to their examples." : "Colours are classes that the data knows.";
  const plain = state.model.layout === "axes" ? " A better layout is being made." : "";
  return `All ${plural(map.n, "node")}, near those that they are most like. ${how}${plain}`;
}

function said(row) {
  const name = nameOf(row);
  if (name === null) return null;
  const [claim, label] = [claimOf(row), knownOf(row)];
  return `${name}${claim === null ? "" : ` · ${claim}`}${label === null ? "" : ` (in the data: ${label})`}`;
}

async function select(polygon, title) {
  const rows = inside(polygon, fit());
  if (!rows.length) return say("No node is inside.");
  const notes = rows.length > MOST ? [`${number(rows.length)} are inside; the first ${number(MOST)} are taken.`] : [];
  const names = await fetchNames(rows.slice(0, MOST));
  choose(title, names.map((node) => ({ node, class: null })), notes);
}

// --- pointer and keys ---

let asked = 0;
function point(row, place = null) {
  if (row !== pointed) {
    pointed = row;
    canvas.classList.toggle("hit", row >= 0);
    request();
    clearTimeout(asked);
    if (row >= 0 && nameOf(row) === null) asked = setTimeout(() => fetchNames([row]).then(paint), 40);
  }
  tip = row >= 0 ? (place ?? tip) : null;
  paint();
}

function hover(here) {
  const [row, distance] = nearest(here, fit());
  point(distance < REACH ? row : -1, here);
}

const open = (row) => attempt(async () => lookAt((await fetchNames([row]))[0]));

function keyed(event) {
  if (event.key === "Enter" && pointed >= 0) return open(pointed);
  if (event.key === "+" || event.key === "-") return zoom(event.key === "+" ? 1.6 : 0.625);
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!way || !map.n) return;
  event.preventDefault();
  const from = pointed < 0 ? [look.size[0] / 2, look.size[1] / 2] : screen(map.x[pointed], map.y[pointed]);
  const ahead = (dx, dy) => dx * way[0] + dy * way[1] > Math.max(2, Math.abs(dx * way[1] + dy * way[0]));
  const [row] = nearest(from, fit(), pointed < 0 ? undefined : ahead);
  if (row >= 0) point(row, screen(map.x[row], map.y[row]));
}

function opened() {
  [dots, placed, moving] = [glDots(below), null, new Map()];
  if (!dots) say("This browser has no WebGL 2: the map shows classes, and no dots.");
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
      const k = bounded(before.k * factor);
      const [[ax, ay], [bx, by]] = [share(from), share(to)];
      move({ k, x: before.x + ax / before.k - bx / k, y: before.y + ay / before.k - by / k });
    },
  });
  const observer = new ResizeObserver(resize);
  const redressed = () => (readInk(), recolour());
  observer.observe(canvas);
  dark.addEventListener("change", redressed);
  readInk();
  attempt(appear);
  return () => (observer.disconnect(), dark.removeEventListener("change", redressed), (canvas = null));
}

function Tools() {
  const toggle = (text, on, act, title) => button(text, act, { class: "plain small", "aria-pressed": String(on), title });
  const [w, h] = look.size;
  const all = [[0, 0], [w, 0], [w, h], [0, h]];
  const one = (text, factor, label) => button(text, () => zoom(factor), { class: "plain small", "aria-label": label });
  return html`<div class="row tools" id="map-tools">
    ${toggle("Lasso", lasso, () => ((lasso = !lasso), paint()), "Draw around nodes to select them; or hold Shift")}
    ${button("Select what is in view", () => attempt(() => select(all, "What the map shows")), { class: "plain small" })}
    ${toggle("Colours of the data", colouring(), () => ((known = !colouring()), recolour(), paint()), "Muted colours for classes that the data knows")}
    <span class="grow" /><span class="zoom" role="group" aria-label="Zoom of the map">
      ${one("+", 1.6, "Zoom in")}${one("−", 0.625, "Zoom out")}${one("⤢", 0, "Show the whole map")}</span></div>`;
}

export default function View() {
  const [over, under] = [useRef(null), useRef(null)];
  useEffect(() => {
    if (!over.current) return;
    [canvas, below] = [over.current, under.current];
    return opened();
  }, []);
  request();
  if (!state.model.map)
    return html`<p id="map-note" class="soft">${state.model.method_name} has no embedding of nodes: there is no map, no prototype, and no node to suggest.</p>`;
  const text = pointed >= 0 ? said(pointed) : null;
  const [x, y] = tip ?? [0, 0];
  const place = { left: `${Math.min(x + 14, look.size[0] - 160)}px`, top: `${y + 16 > look.size[1] - 30 ? y - 30 : y + 16}px` };
  return html`<${Tools} /><div class="canvas"><canvas class="dots" aria-hidden="true" ref=${under} />
    <canvas class="marks" tabindex="0" role="application" aria-roledescription="map" ref=${over} onkeydown=${keyed} onblur=${() => point(-1)}
      aria-label="Map of the nodes. Arrow keys go from node to node, Enter looks at one." aria-describedby="map-note" />
    <p class="tip" aria-hidden="true" hidden=${text === null || !tip} style=${place}>${text}</p></div>
    <p id="map-note" class="soft small" aria-live="polite">${caption()}</p>`;
}
