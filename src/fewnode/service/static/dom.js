// Elements from plain data. Text only ever becomes a text node, so a name cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const button = (text, onclick, attributes = {}) =>
  el("button", { type: "button", onclick, ...attributes }, text);

export const byId = (id) => document.getElementById(id);

// A bar whose length is a share of its track; the number beside it says the same.
export function bar(share, slot) {
  const inner = el("span", { class: `fill ${colour(slot)}` });
  inner.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, inner);
}

// Redraws often replace what has the focus: the same control (its data-key) gets it back or, if it is gone, the one that
// took its place. What was typed meanwhile stays, and so does the caret.
const keyed = (parent) => [...parent.querySelectorAll("[data-key]")];
export function redraw(parent, ...children) {
  if (pressed && parent.contains(pressed)) return waiting.set(parent, children);
  replace(parent, children);
}

// A click needs its button until the finger is up: what comes meanwhile is drawn after it.
let pressed = null;
const waiting = new Map();
function released() {
  pressed = null;
  setTimeout(() => {
    const late = [...waiting];
    waiting.clear();
    late.forEach(([parent, children]) => redraw(parent, ...children));
  });
}
document.addEventListener("pointerdown", (event) => (pressed = event.target), true);
document.addEventListener("pointerup", released, true);
document.addEventListener("pointercancel", released, true);

function replace(parent, children) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const place = key === undefined ? -1 : keyed(parent).indexOf(document.activeElement);
  const top = parent.scrollTop;
  const typed = keyed(parent).filter((field) => "defaultValue" in field && field.value !== field.defaultValue);
  const caret = key === undefined ? null : [document.activeElement.selectionStart, document.activeElement.selectionEnd];
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  parent.scrollTop = top;
  const now = keyed(parent);
  const same = (wanted) => now.find((e) => e.dataset.key === wanted);
  for (const { dataset, value } of typed) if (same(dataset.key)) same(dataset.key).value = value;
  if (key === undefined) return;
  (same(key) ?? now[Math.min(place, now.length - 1)])?.focus({ preventScroll: true });
  if (same(key)?.setSelectionRange && typeof caret[0] === "number") same(key).setSelectionRange(...caret);
}

// A class is told by colour and by shape. Shapes are unit paths, for SVG and canvas alike.
const COLOURS = 6;
export const SHAPES = [
  "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  "M-.9-.9H.9V.9H-.9Z",
  "M0-1.15L1.1.8H-1.1Z",
  "M0-1.25L1.25 0L0 1.25L-1.25 0Z",
  "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
  "M-1.1 0L-.55-.95H.55L1.1 0L.55.95H-.55Z",
];
export const colour = (slot) => (slot < 0 ? "none" : `c${slot % COLOURS}`);
export const shape = (slot) => SHAPES[(slot + Math.floor(slot / COLOURS)) % SHAPES.length];
export const mark = (slot) =>
  svg(
    "svg",
    { viewBox: "-1.4 -1.4 2.8 2.8", class: `mark ${colour(slot)}`, "aria-hidden": "true" },
    svg("path", { d: shape(slot) }),
  );

export const number = (value) => value.toLocaleString("en");
export const percent = (value) => `${(100 * value).toFixed(value > 0.9995 || value < 0.0005 ? 0 : 1)} %`;
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
