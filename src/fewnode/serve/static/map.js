// The map: every dot a node by its embedding, coloured by the class that claims it; prototypes move as classes learn.

import { look } from "./actions.js";
import { byId, number, percent, shape } from "./dom.js";
import { classOf, on, slot, state, verdict } from "./state.js";
import { attempt } from "./status.js";

const PAD = 26;
const REACH = 14; // how near, in pixels, the pointer must be to a dot
const DURATION = 900;
const COLOURS = 6;

const figure = byId("map");
const canvas = figure.querySelector("canvas");
const note = byId("map-note");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

let ink = {};
let size = [0, 0];
let view = { k: 1, x: 0, y: 0 };
let backdrop = null; // the dots, painted once and copied under every frame
let claims = []; // a dot's slot and certainty
let previous = [];
let moving = new Map(); // class -> {from, to, trail}
let began = 0;
let frame = 0;
let pointed = -1;

function readInk() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  ink = {
    paper: value("field"),
    ink: value("ink"),
    soft: value("dot"),
    focus: value("focus"),
    c: Array.from({ length: COLOURS }, (_, i) => value(`c${i}`)),
  };
}

const paint = (s) => (s < 0 ? ink.soft : ink.c[s % COLOURS]);

function toScreen([x, y]) {
  const [w, h] = size;
  return [PAD + (x - view.x) * view.k * (w - 2 * PAD), PAD + (1 - y - view.y) * view.k * (h - 2 * PAD)];
}

function resize() {
  const { width, height } = canvas.getBoundingClientRect();
  if (!width || !height) return;
  const scale = Math.min(2, devicePixelRatio || 1);
  size = [width, height];
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  repaint();
}

function repaint() {
  backdrop = null;
  request();
}

function request() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function outlined(s, x, y, radius) {
  const placed = new Path2D();
  placed.addPath(new Path2D(shape(s)), new DOMMatrix().translate(x, y).scale(radius));
  return placed;
}

// Grey first, so that what is claimed lies on top; sure dots are more opaque than doubtful ones.
function paintDots(context, of, strength) {
  const { map } = state;
  const room = Math.sqrt((size[0] * size[1]) / map.nodes.length);
  const radius = Math.max(1.5, Math.min(3.2, 0.26 * room)) * Math.min(1.8, Math.sqrt(view.k));
  const [w, h] = size;
  const order = map.nodes.map((_, i) => i).sort((a, b) => (of[a]?.slot ?? -1) - (of[b]?.slot ?? -1));
  for (const i of order) {
    const [x, y] = toScreen([map.x[i], map.y[i]]);
    if (x < -5 || y < -5 || x > w + 5 || y > h + 5) continue;
    const { slot: s = -1, sure = 0 } = of[i] ?? {};
    context.globalAlpha = strength * (s < 0 ? 0.5 : 0.25 + 0.6 * sure);
    context.fillStyle = paint(s);
    context.beginPath();
    context.arc(x, y, s < 0 ? radius * 0.8 : radius, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
}

function makeBackdrop(of) {
  const layer = document.createElement("canvas");
  layer.width = canvas.width;
  layer.height = canvas.height;
  const context = layer.getContext("2d");
  context.setTransform(canvas.width / size[0], 0, 0, canvas.width / size[0], 0, 0);
  paintDots(context, of, 1);
  return layer;
}

function copy(context, layer, strength) {
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = strength;
  context.drawImage(layer, 0, 0);
  context.restore();
}

const ease = (t) => 1 - (1 - t) ** 3;

function draw(now) {
  frame = 0;
  if (!state.map || !size[0]) return;
  const context = canvas.getContext("2d");
  const t = still.matches ? 1 : Math.min(1, (now - began) / DURATION);
  context.clearRect(0, 0, ...size);
  backdrop ??= { now: makeBackdrop(claims), before: t < 1 ? makeBackdrop(previous) : null };
  if (t < 1 && backdrop.before) {
    copy(context, backdrop.before, 1 - ease(t));
    copy(context, backdrop.now, ease(t));
  } else copy(context, backdrop.now, 1);
  const placed = state.classes.filter((one) => one.position);
  for (const one of placed) support(context, one, ease(t));
  for (const one of placed) prototype(context, one, ease(t));
  const taken = placed.map((one) => toScreen(at(one, ease(t)))).map(([x, y]) => ({ left: x - 12, width: 24, top: y }));
  for (const one of placed) label(context, one.name, ...toScreen(at(one, ease(t))), taken);
  ring(context);
  if (t < 1) request();
}

function at(one, t) {
  const { from, to } = moving.get(one.name) ?? { from: one.position, to: one.position };
  return [from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t];
}

// A support node is tied to its prototype, by a line as strong as its β.
function support(context, one, t) {
  const s = slot(one.name);
  const [px, py] = toScreen(at(one, t));
  for (const { node, beta } of one.support) {
    const place = state.positions.get(node);
    if (!place) continue;
    const [x, y] = toScreen(place);
    context.strokeStyle = paint(s);
    context.globalAlpha = 0.75;
    context.lineWidth = 0.75 + 3 * beta;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(px, py);
    context.stroke();
    context.globalAlpha = 1;
    const outline = outlined(s, x, y, 4.5);
    context.fillStyle = ink.paper;
    context.fill(outline);
    context.lineWidth = 2;
    context.stroke(outline);
  }
}

function prototype(context, one, t) {
  const s = slot(one.name);
  const { from } = moving.get(one.name) ?? {};
  const [x, y] = toScreen(at(one, t));
  if (from && t < 1) {
    const [fx, fy] = toScreen(from);
    context.strokeStyle = paint(s);
    context.globalAlpha = 1 - t;
    context.setLineDash([3, 4]);
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(fx, fy);
    context.lineTo(x, y);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  const outline = outlined(s, x, y, 9);
  context.lineWidth = 5;
  context.strokeStyle = ink.paper;
  context.stroke(outline);
  context.fillStyle = paint(s);
  context.fill(outline);
}

// Beside its mark, or where no other mark or label is.
function label(context, name, x, y, taken) {
  const text = [...name].length > 24 ? `${[...name].slice(0, 23).join("")}…` : name;
  context.font = `600 15px ${getComputedStyle(figure).fontFamily}`;
  const width = context.measureText(text).width;
  const left = x + 15 + width > size[0] ? x - 15 - width : x + 15;
  const free = (top) =>
    !taken.some((l) => Math.abs(l.top - top) < 18 && left < l.left + l.width && l.left < left + width);
  const top = [0, -20, 20, -38, 38, -56, 56].map((by) => y + by).find(free) ?? y;
  taken.push({ left, top, width });
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 5;
  context.strokeStyle = ink.paper;
  context.strokeText(text, left, top);
  context.fillStyle = ink.ink;
  context.fillText(text, left, top);
}

// Around the node that is looked at, and the one that is pointed at.
function ring(context) {
  const rings = [
    state.node && state.positions.get(state.node.node),
    pointed >= 0 && [state.map.x[pointed], state.map.y[pointed]],
  ];
  rings.forEach((place, i) => {
    if (!place) return;
    const [x, y] = toScreen(place);
    context.beginPath();
    context.arc(x, y, i ? 7 : 10, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = i ? ink.focus : ink.ink;
    context.stroke();
  });
}

function settle() {
  const next = new Map();
  for (const one of state.classes) {
    if (!one.position) continue;
    const before = moving.get(one.name);
    next.set(one.name, {
      from: before ? before.to : (state.positions.get(one.support[0]?.node) ?? one.position),
      to: one.position,
    });
  }
  moving = next;
  animate();
}

function animate() {
  began = performance.now();
  repaint();
}

function recolour() {
  previous = claims;
  claims = [];
  if (state.colours) {
    const { classes, of } = state.colours;
    claims = state.map.nodes.map((_, i) => {
      const result = of(i);
      if (!result) return undefined;
      const { name, share } = verdict(result, classes);
      const floor = 1 / classes.length;
      const sure = classes.length > 1 ? Math.max(0, (share - floor) / (1 - floor)) : 1;
      return { slot: name === null ? -1 : slot(name), sure: sure * (state.options.openSet ? (result.member ?? 1) : 1) };
    });
  }
  animate();
  caption();
}

function caption() {
  const { map, model } = state;
  if (!map)
    return (note.textContent = `${model.method} has no embedding of nodes: there is no map, no prototype, and no node to suggest.`);
  if (pointed >= 0) {
    const name = map.nodes[pointed];
    const known = map.class_names[map.class[pointed]];
    const result = state.colours?.of(pointed);
    const own = classOf(name);
    const { name: claimed = null, probability = 0 } = result ? verdict(result, state.colours.classes) : {};
    const said = own !== null ? `, labelled ${own}` : claimed === null ? "" : `, ${claimed} ${percent(probability)}`;
    note.textContent = `${name}${said}${known ? ` (in the data: ${known})` : ""}`;
    return;
  }
  const sample =
    map.shown < map.total ? `${number(map.shown)} of ${number(map.total)} nodes` : `All ${number(map.total)} nodes`;
  const others = model.classes.train.length ? `${model.classes.train.length} other classes` : "other networks";
  const how = `, placed by what was learnt from ${others}.`;
  note.textContent = `${sample}${state.classes.length ? ". Large: prototypes; lines: their labelled nodes, by β." : how}`;
}

function nearest(x, y, allowed = () => true) {
  let best = -1;
  let least = Infinity;
  state.map?.nodes.forEach((_, i) => {
    const [sx, sy] = toScreen([state.map.x[i], state.map.y[i]]);
    const d = (sx - x) ** 2 + (sy - y) ** 2;
    if (d < least && allowed(sx, sy, i)) [best, least] = [i, d];
  });
  return [best, Math.sqrt(least)];
}

function point(i) {
  if (i === pointed) return;
  pointed = i;
  canvas.classList.toggle("hit", i >= 0);
  caption();
  request();
}

function zoom(factor, cx = 0.5, cy = 0.5) {
  const k = factor === 0 ? 1 : Math.min(24, Math.max(1, view.k * factor));
  const keep = (offset, c) => offset + c / view.k - c / k;
  const bound = (offset) => Math.min(Math.max(0, offset), 1 - 1 / k);
  view = { k, x: bound(keep(view.x, cx)), y: bound(keep(view.y, cy)) };
  repaint();
}

const inside = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { at: inside(event), view: { ...view }, moved: false };
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = inside(event);
  if (drag && event.buttons && view.k > 1) {
    const [dx, dy] = [x - drag.at[0], y - drag.at[1]];
    drag.moved ||= Math.hypot(dx, dy) > 4;
    const bound = (offset) => Math.min(Math.max(0, offset), 1 - 1 / view.k);
    view = {
      ...view,
      x: bound(drag.view.x - dx / view.k / (size[0] - 2 * PAD)),
      y: bound(drag.view.y - dy / view.k / (size[1] - 2 * PAD)),
    };
    return repaint();
  }
  const [i, distance] = nearest(x, y);
  point(distance < REACH ? i : -1);
});
canvas.addEventListener("pointerleave", () => point(-1));
canvas.addEventListener("click", (event) => {
  if (drag?.moved) return;
  const [i, distance] = nearest(...inside(event));
  if (distance < 2 * REACH) attempt(() => look(state.map.nodes[i]));
});
canvas.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    const [x, y] = inside(event);
    zoom(event.deltaY < 0 ? 1.25 : 0.8, (x - PAD) / (size[0] - 2 * PAD), (y - PAD) / (size[1] - 2 * PAD));
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && pointed >= 0) return attempt(() => look(state.map.nodes[pointed]));
  if (event.key === "+" || event.key === "-") return zoom(event.key === "+" ? 1.6 : 0.625);
  const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!way || !state.map) return;
  event.preventDefault();
  if (pointed < 0) return point(nearest(size[0] / 2, size[1] / 2)[0]);
  const [x, y] = toScreen([state.map.x[pointed], state.map.y[pointed]]);
  const ahead = (sx, sy) =>
    (sx - x) * way[0] + (sy - y) * way[1] > Math.max(2, Math.abs((sx - x) * way[1] + (sy - y) * way[0]));
  const [i] = nearest(x, y, ahead);
  if (i >= 0) point(i);
});
canvas.addEventListener("blur", () => point(-1));
figure.querySelector(".zoom").addEventListener("click", (event) => {
  const factor = event.target.closest("button")?.dataset.zoom;
  if (factor !== undefined) zoom(Number(factor));
});

const recolourPage = () => (readInk(), repaint());
dark.addEventListener("change", recolourPage);
readInk();
new ResizeObserver(resize).observe(canvas);
on("map", () => {
  figure.querySelector(".canvas").hidden = !state.map;
  resize();
  caption();
});
on("classes", settle);
on("places node", request);
on("colours", recolour);
