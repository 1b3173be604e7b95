// Parts that several views are made of. Text only ever becomes a text node, so a name cannot become markup.

import { html, useState } from "./vendored/preact.js";
import { attempt, lookAt, slot } from "./desk.js";

export { html };
export const number = (value) => value.toLocaleString("en");
export const percent = (value) => `${(100 * value).toFixed(value > 0.9995 || value < 0.0005 ? 0 : 1)} %`;
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
export const list = (items, between = ", ") => items.map((item, i) => [i > 0 && between, item]);

// A class is told by colour and by shape. Shapes are unit paths, for SVG and canvas alike.
const COLOURS = 6;
const SHAPES = [
  "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  "M-.9-.9H.9V.9H-.9Z",
  "M0-1.15L1.1.8H-1.1Z",
  "M0-1.25L1.25 0L0 1.25L-1.25 0Z",
  "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
  "M-1.1 0L-.55-.95H.55L1.1 0L.55.95H-.55Z",
];
export const colour = (place) => (place < 0 ? "none" : `c${place % COLOURS}`);
export const shape = (place) => SHAPES[(Math.max(0, place) + Math.floor(Math.max(0, place) / COLOURS)) % SHAPES.length];
export const mark = (name) => html`<svg viewBox="-1.4 -1.4 2.8 2.8" class="mark ${colour(slot(name))}" aria-hidden="true">
  <path d=${shape(slot(name))} /></svg>`;

export const button = (text, onclick, more = {}) => html`<button type="button" onclick=${onclick} ...${more}>${text}</button>`;
export const link = (node, more = {}) => button(node, lookAt(node), { class: "link", ...more });

// A bar whose length is a share of its track; the number beside it says the same.
export const bar = (share, name) => html`<span class="bar" aria-hidden="true">
  <span class="fill ${colour(slot(name))}" style=${{ width: `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%` }} /></span>`;

// What is not needed at once.
export const More = ({ title = "More", open = false, children }) =>
  html`<details open=${open}><summary class="small soft">${title}</summary>${children}</details>`;

export const check = (id, text, checked, change, more = {}) => html`<span class="check">
  <input type="checkbox" id=${id} checked=${checked} onchange=${(event) => change(event.target.checked)} ...${more} />
  <label for=${id}>${text}</label></span>`;

// A name that is asked for in a field, with the reason why it cannot be.
export function Naming({ id, label, submit, refuse, action = "Start", solid = false, children }) {
  const [why, tell] = useState("");
  const go = (event) => {
    event.preventDefault();
    const form = event.target;
    const name = form.elements[id].value.trim();
    const reason = refuse(name);
    tell(reason ?? "");
    if (reason) return form.elements[id].focus();
    Promise.resolve(submit(name, form)).then((well) => well !== false && form.reset());
  };
  return html`<form class="stack naming" onsubmit=${go}>
    <label for=${id} class="small">${label}</label>
    <span class="row grow"><input id=${id} maxlength="200" autocomplete="off" />
      ${!children && html`<button class=${solid ? "solid" : "plain"}>${action}</button>`}</span>
    ${children}${children && html`<p><button class="plain">${action}</button></p>`}
    <p class="small error" role="alert">${why}</p></form>`;
}

// A view that is fetched when it is first shown.
export function later(fetched, name) {
  let [View, coming] = [null, null];
  return (given) => {
    if (View) return html`<${View} ...${given} />`;
    coming ??= attempt(async () => (View = (await fetched())[name]));
    return html`<p class="soft">…</p>`;
  };
}

// --- what a node is ---

// Its own text where the dataset keeps it, else its most telling words; those that both nodes have are marked.
export function Content({ about, shared = new Set() }) {
  const { text, link: address, words } = about;
  return html`${address && html`<p class="small"><a href=${address} target="_blank" rel="noopener noreferrer">Open it</a></p>`}
    ${text ? html`<p class="text">${marked(text, shared)}</p>` : html`<${Words} words=${words} shared=${shared} />`}`;
}

function marked(text, shared) {
  if (!shared.size) return text;
  return text.split(/(\s+)/).map((part) => {
    const word = part.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
    return shared.has(word) ? html`<mark>${part}</mark>` : part;
  });
}

function Words({ words, shared }) {
  if (!words.length) return null;
  const top = Math.max(...words.map((w) => Math.abs(w.weight))) || 1;
  const size = ({ weight }) => `w${Math.round((3 * Math.abs(weight)) / top)}`;
  return html`<p class="words" role="group" aria-label="Its most telling words">${words.map((w) => [
    html`<span class=${size(w)} title="weight ${w.weight.toPrecision(3)}">
      ${shared.has(w.word) ? html`<mark>${w.word}</mark>` : w.word}</span>`, " "])}</p>`;
}

// --- why a class claims a node, or does not ---

const entry = (title, ...told) => [html`<dt>${title}</dt>`, html`<dd>${told}</dd>`];

export function Reasons({ why, open = false }) {
  if (!why) return html`<p class="soft small">Looking for reasons…</p>`;
  const { sentence, words = [], neighbours = [], path, views = [] } = why;
  const step = ({ node, kind }) => [soft(kind && kind !== "edges" ? ` – ${kind} – ` : " – "), link(node)];
  const shared = ({ node, kind, example }) => [
    link(node),
    kind && kind !== "edges" && soft(` ${kind}`),
    example && example !== node && [" → ", link(example)],
  ];
  return html`${sentence && html`<p class="because">It ${sentence}.</p>`}
    <${More} open=${open}><dl class="reasons small">
      ${words.length > 0 && entry("Shares with examples", list(words.slice(0, 10).map(({ word, in_examples: n }) =>
        [html`<strong>${word}</strong>`, n > 1 && soft(` ×${n}`)])))}
      ${neighbours.length > 0 && entry("Neighbours in common", list(neighbours.slice(0, 6).map(shared)))}
      ${path?.length > 0 && entry("Path to an example", "it", path.map(step))}
      ${near("Nearest example", why.nearest_example)}
      ${near("Nearest counter-example", why.nearest_counter)}
      ${views.length > 0 && entry("How each view votes", html`<ul class="votes">${views.map(vote)}</ul>`)}
    </dl></${More}>`;
}

const soft = (text) => html`<span class="soft">${text}</span>`;
const near = (title, found) => found && entry(title, link(found.node), soft(` similarity ${found.similarity.toFixed(2)}`));

// A vote is drawn from the middle: to the right for the class, to the left against it.
const vote = ({ view, vote: said }) => html`<li><span class="name">${view}</span>
  <span class="vote" aria-hidden="true">
    <span class=${said < 0 ? "against" : "for"} style=${{ width: `${(50 * Math.min(1, Math.abs(said))).toFixed(1)}%` }} /></span>
  <span class="num">${said > 0 ? "+" : said < 0 ? "−" : ""}${Math.abs(said).toFixed(2)}</span></li>`;
