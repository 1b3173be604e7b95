// What to trust: how many members there may be, how much of what is claimed is right, and from where on to claim.

import { More, check, html, mark, number, percent, plural } from "./parts.js";
import { answered, attempt, judgeBy, paint, state } from "./desk.js";

const [WIDTH, HEIGHT] = [300, 110];
const whole = (share) => `${Math.round(100 * share)} %`;
const between = ({ low, high }) => `${Math.round(100 * low)}–${whole(high)}`;

export function Trust() {
  if (!state.classes.length || !answered()) return null;
  const own = state.trust?.classes[state.active];
  return html`<section id="trust" aria-labelledby="trust-title">
    <h2 id="trust-title">What to trust</h2>
    ${state.trust?.note && html`<p class="small">${state.trust.note}</p>`}
    ${own ? html`<${Headline} own=${own} />` : html`<p class="soft small">${state.trust ? "This class claims nothing yet." : "Counting…"}</p>`}
    ${state.model.open_set && own && html`<${Threshold} own=${own} />`}
    <${More}>${own && html`<${Figures} own=${own} />`}
      ${state.model.open_set && own?.curve?.length > 1 && html`<${Curve} points=${own.curve} />`}
      ${option("Allow “none of these”", "openSet", state.model.open_set)}
      ${option("Nodes help each other: judged together", "transductive", state.model.modes.length > 1)}</${More}></section>`;
}

function Headline({ own: { claimed, precision, enough, reason } }) {
  return html`<p class="headline">${mark(state.active)}<strong>${number(claimed)}</strong> claimed${precision && [
    ", ", html`<strong>${whole(precision.value)}</strong>`, " right ",
    html`<span class="soft small">(${between(precision)})</span>`]}</p>
    <p class="small">${enough && html`<strong>You can stop: </strong>`}${reason}.</p>`;
}

function Figures({ own: { known } }) {
  const told = (title, share) => share && html`<dt>${title}</dt><dd><strong>${whole(share.value)}</strong>
    <span class="soft"> (${between(share)}) of ${number(share.n)}</span></dd>`;
  return html`<dl class="facts small"><dt>None of these</dt><dd>${plural(state.trust.none, "node")}</dd>
    ${known && [told("Right, by the data’s labels", known.precision), told("Found, by the data’s labels", known.recall)]}
    ${known && html`<dd class="soft">Compared with the data’s ${known.compared_with}; answered nodes are left out.</dd>`}</dl>`;
}

const option = (text, key, can) =>
  html`<p>${check(`option-${key}`, text, state.options[key], (on) => attempt(() => judgeBy(key, on)), { disabled: !can })}</p>`;

const at = (curve, value) => curve.reduce((best, p) => (Math.abs(p.threshold - value) < Math.abs(best.threshold - value) ? p : best));
const share = (text, value) => (value === null ? "" : `, ${whole(value)} ${text}`);

let moving = null; // where the slider is while it is moved
function Threshold({ own }) {
  const value = moving ?? state.options.threshold;
  const point = own.curve?.length ? at(own.curve, value) : null;
  const move = (event) => ((moving = Number(event.target.value)), paint());
  const set = () => attempt(() => judgeBy("threshold", moving).finally(() => (moving = null)));
  return html`<div class="stack"><label for="option-threshold">Claim a node from ${Math.round(100 * value)} % on
    ${point && html`<span class="soft small"> ${plural(point.claimed, "node")}${share("right", point.precision)}${share("found", point.recall)}, estimated</span>`}</label>
    <input type="range" id="option-threshold" min="0.05" max="0.95" step="0.05" value=${value} disabled=${!state.options.openSet}
      oninput=${move} onchange=${(event) => (move(event), set())} /></div>`;
}

// Precision and recall by the threshold; where the slider stands is marked.
function Curve({ points }) {
  const x = (t) => 4 + (WIDTH - 44) * t;
  const y = (value) => 8 + (HEIGHT - 16) * (1 - value);
  const line = (what) => points.filter((p) => p[what] !== null).map((p, i) => `${i ? "L" : "M"}${x(p.threshold).toFixed(1)} ${y(p[what]).toFixed(1)}`);
  const now = state.options.threshold;
  const here = at(points, now);
  const said = (what) => `${what} ${here[what] === null ? "unknown" : percent(here[what])}`;
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" class="curve" role="img" aria-label="At ${whole(now)}: ${said("precision")}, ${said("recall")}, estimated">
      ${[0, 0.5, 1].map((level) => html`<line x1="4" x2=${WIDTH - 40} y1=${y(level)} y2=${y(level)} class="grid" />
        <text x=${WIDTH} y=${y(level) + 4}>${whole(level)}</text>`)}
      <line x1=${x(now)} x2=${x(now)} y1=${y(1)} y2=${y(0)} class="here" />
      ${["recall", "precision"].map((what) => html`<path class="line ${what}" d=${line(what).join("")} />
        ${here[what] !== null && html`<circle cx=${x(now)} cy=${y(here[what])} r="4" class="now ${what}" />`}`)}</svg>
    <p class="soft small">solid: precision, dashed: recall; both estimated</p>`;
}
