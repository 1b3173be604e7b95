// The list: what the classes claim, to be sorted, filtered, answered in bulk and taken away.

import { More, button, check, html, link, mark, number, percent, plural } from "./parts.js";
import * as desk from "./desk.js";
import { answered, attempt, claimsOf, judging, paint, shown, state } from "./desk.js";
import { Completed } from "./find.js";
import * as service from "./service.js";

const PAGE = 50;
const DAY = 24 * 3600 * 1000;
// How a list is that nobody has changed. `columns`: attributes that are shown; `since`: only nodes that came later.
const USUAL = {
  all: false, sort: "probability", descending: true, group: true, text: "", attribute: "", value: "",
  unanswered: true, attached: false, columns: [], since: "",
};
const list = { ...USUAL, rows: null, total: 0, groups: null, selected: new Set(), of: null };
const about = () => (list.all ? null : state.active);

// A newer question makes an older one moot.
let latest = 0;
async function load(offset = 0, current = () => true) {
  if (shown() !== "list" || !answered()) return;
  const mine = ++latest;
  const { sort, descending, group, text, attribute, value, unanswered, attached, since, columns } = list;
  const found = await service.claims({
    ...judging(), ...(about() === null ? {} : { class: about() }), ...(columns.length ? { attributes: columns } : {}),
    text, attribute, value, unanswered, attached, since, sort, descending, group: group && state.model.explains, offset, limit: PAGE,
  });
  if (mine !== latest || !current()) return;
  list.rows = offset ? [...list.rows, ...found.rows] : found.rows;
  Object.assign(list, { total: found.total, groups: found.groups ?? null, of: about() });
  const there = new Set(list.rows.map((row) => row.node));
  list.selected = new Set([...list.selected].filter((node) => there.has(node)));
  paint();
}

const reload = () => attempt(() => load());
const change = (what) => (Object.assign(list, what), paint(), reload());
desk.onClaims((current) => load(0, current));

// What differs from the usual list is in the address.
desk.inAddress(
  (said) => {
    for (const [key, usual] of Object.entries(USUAL))
      if (Array.isArray(usual)) list[key].forEach((one) => said.append(`list-${key}`, one));
      else if (list[key] !== usual) said.set(`list-${key}`, typeof usual === "boolean" ? Number(list[key]) : list[key]);
  },
  (said) => {
    for (const [key, usual] of Object.entries(USUAL)) {
      const given = said.getAll(`list-${key}`).filter(Boolean);
      if (Array.isArray(usual)) list[key] = given.slice(0, 20);
      else if (given.length) list[key] = typeof usual === "boolean" ? given[0] === "1" : given[0];
    }
    if (Number.isNaN(Date.parse(list.since))) list.since = "";
  },
);

let before = null; // the view and class that the rows were asked for
export default function List() {
  if (!answered()) return html`<p class="soft">Nothing is claimed yet. Start a class first.</p>`;
  if (before !== about()) {
    Object.assign(list, { rows: null, selected: new Set() });
    before = about();
    reload();
  }
  return html`<${Heading} /><${Filters} /><${Bulk} /><div onkeydown=${keyed}><${Rows} /></div>
    ${list.rows && html`<${Exports} />`}`;
}

function Heading() {
  const name = about();
  const count = name === null ? list.total : claimsOf(name);
  const from = ` ${plural(count ?? 0, "node")} claimed from ${Math.round(100 * state.options.threshold)} % on`;
  return html`<header class="row"><h2 class="grow">${list.since ? "New since then" : name === null ? "All claims" : [mark(name), name]}
    ${count !== null && !list.since && html`<span class="soft small">${from}</span>`}</h2>
    <select id="list-class" aria-label="Of which class" value=${list.all ? "all" : ""} onchange=${(event) => change({ all: event.target.value === "all" })}>
      <option value="">the active class</option><option value="all">all classes</option></select></header>`;
}

const narrowed = () => list.text || list.attribute || list.attached || list.since;
let pause = 0;
const field = (label, key) => ({
  id: `list-${key}`, "aria-label": label, placeholder: label, autocomplete: "off", defaultValue: list[key],
  oninput: ({ target }) => (clearTimeout(pause), (pause = setTimeout(() => change({ [key]: target.value.trim() }), 250))),
});
const tick = (text, key) => check(`list-${key}`, text, list[key], (on) => change({ [key]: on }));
const local = (iso) => iso && new Date(Date.parse(iso) - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

function Filters() {
  const since = (moment) => change({ since: moment ? new Date(moment).toISOString() : "" });
  const hide = (name) => () => change({ columns: list.columns.filter((other) => other !== name), sort: "probability" });
  return html`<${More} title=${narrowed() ? "Filters, some of them set" : "Filters"} open=${matchMedia("(min-width: 1001px)").matches}><div class="filters">
    <p class="row"><input type="search" ...${field("Filter by name or text", "text")} />
      <${Completed} ...${field("Attribute", "attribute")} /><input ...${field("Value", "value")} /></p>
    <p class="row small">
      <${Completed} id="list-column" aria-label="Show an attribute as a column" placeholder="Show an attribute" onchange=${widen} />
      ${list.columns.map((name) => button(`${name} ×`, hide(name), { class: "plain small", "aria-label": `${name} ×: hide this column` }))}
      ${state.model.explains && tick("Group near-duplicates", "group")}${tick("Only unanswered", "unanswered")}${tick("Only new nodes", "attached")}
      <span class="since"><label for="list-since">New since</label>
        <input type="datetime-local" id="list-since" value=${local(list.since)} onchange=${(event) => since(event.target.value)} />
        ${list.since ? button("All claims", () => since(null), { class: "quiet" }) : button("Yesterday", () => since(Date.now() - DAY), { class: "quiet" })}</span></p>
    </div></${More}>`;
}

// A name that no attribute has is refused by the service, and no column.
async function widen({ target }) {
  const name = target.value.trim();
  target.value = "";
  if (!name || list.columns.includes(name)) return;
  list.columns = [...list.columns, name];
  if (!(await reload())) change({ columns: list.columns.filter((other) => other !== name) });
}

// --- answers in bulk: a row that stands for near-duplicates stands for all of them that the service named ---

const members = (row) => (list.group && row.group ? [...new Set([row.node, ...row.group.nodes])] : [row.node]);
const chosen = () => (list.rows ?? []).filter((row) => list.selected.has(row.node));
const act = (rows, verdict) =>
  attempt(async () => {
    const byClass = new Map();
    for (const row of rows) byClass.set(row.class, [...(byClass.get(row.class) ?? []), ...members(row)]);
    list.selected.clear();
    for (const [name, nodes] of byClass) await desk.decideAll(nodes, name, verdict);
  });

function Bulk() {
  const rows = chosen();
  const off = rows.length === 0;
  const kinds = list.groups !== null && list.group && list.groups !== list.total ? ` in ${number(list.groups)} kinds` : "";
  const told = list.rows ? `${plural(list.total, "node")}${kinds}. Select rows.` : "Asking…";
  return html`<p class="row bulk"><span class="grow small">${off ? told : `${plural(rows.flatMap(members).length, "node")} selected`}</span>
    ${button("Accept", () => act(rows, "yes"), { class: "solid", disabled: off, "data-letter": "y" })}
    ${button("Reject", () => act(rows, "no"), { class: "solid", disabled: off, "data-letter": "n" })}
    ${button("Clear", () => (list.selected.clear(), paint()), { class: "quiet", disabled: off })}</p>`;
}

function keyed(event) {
  if (event.target.closest("input:not([type=checkbox]), select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const lines = [...event.currentTarget.querySelectorAll("tbody tr")];
  const here = lines.indexOf(event.target.closest("tr"));
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  const verdict = { y: "yes", n: "no" }[event.key];
  if (step && here >= 0) lines[Math.min(lines.length - 1, Math.max(0, here + step))].querySelector("input").focus();
  else if (verdict && (list.selected.size || here >= 0)) act(list.selected.size ? chosen() : [list.rows[here]], verdict);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

// --- the table: a row a node, or a row for several that are nearly the same; what is seldom wanted is behind "More" ---

let wide = false;
function Rows() {
  if (!list.rows) return html`<p class="soft">Asking what is claimed…</p>`;
  if (!list.rows.length)
    return html`<p class="soft">${list.since ? "No class claims a node that came since." : state.trust?.note ?? "No node. Lower the threshold, or filter less."}</p>`;
  const columns = [
    ["node", "Node"], list.of === null && ["class", "Class"], ["probability", "Probability", "num"],
    wide && list.rows.some((row) => row.member !== null) && ["member", "In any class", "num"], wide && ["degree", "Edges", "num"],
    wide && list.rows.some((row) => row.known) && ["known", "In the data"],
    ...Object.keys(list.rows[0].attributes ?? {}).map((name) => [name, name, "", true]),
  ].filter(Boolean);
  const all = list.rows.every((row) => list.selected.has(row.node));
  const every = (event) => ((list.selected = new Set(event.target.checked ? list.rows.map((row) => row.node) : [])), paint());
  const more = (list.group && list.groups !== null ? list.groups : list.total) - list.rows.length;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of claims"><table class="claims">
    <thead><tr><th scope="col"><input type="checkbox" aria-label="Select all rows" checked=${all} onchange=${every} /></th>
      ${columns.map(header)}<th scope="col">Answer</th></tr></thead>
    <tbody>${list.rows.map((row) => html`<${Line} row=${row} columns=${columns} key=${row.node} />`)}</tbody></table></div>
    <p class="row">${more > 0 && button(`Show ${number(Math.min(PAGE, more))} more`, () => attempt(() => load(list.rows.length)), { class: "plain" })}
      ${button(wide ? "Fewer columns" : "More columns", () => ((wide = !wide), paint()), { class: "quiet small" })}</p>`;
}

function header([key, title, kind = ""]) {
  const same = list.sort === key;
  const sort = () => change({ sort: key, descending: same ? !list.descending : ["probability", "degree", "member"].includes(key) });
  return html`<th scope="col" class=${kind} aria-sort=${same ? (list.descending ? "descending" : "ascending") : null}>
    ${key === "known" ? title : button([title, same && html`<span aria-hidden="true">${list.descending ? " ↓" : " ↑"}</span>`], sort, { class: "head" })}</th>`;
}

function Line({ row, columns }) {
  const { node } = row;
  const many = members(row).length - 1;
  const which = many ? `${node} and ${number(many)} like it are` : `${node} is`;
  const select = (event) => (list.selected[event.target.checked ? "add" : "delete"](node), paint());
  const one = (text, verdict, label) =>
    button(text, () => act([row], row.verdict === verdict ? null : verdict), {
      class: "quiet", "aria-label": label, "aria-pressed": String(row.verdict === verdict) });
  return html`<tr class=${row.verdict ?? ""}>
    <td><input type="checkbox" aria-label="Select ${node}" checked=${list.selected.has(node)} onchange=${select} /></td>
    ${columns.map(([key, , kind = "", attribute]) => html`<td class=${kind}>${attribute ? String(row.attributes[key] ?? "") : cell(row, key)}</td>`)}
    <td class="answers">${one("✓", "yes", `Yes, ${which} in ${row.class}`)}${one("✗", "no", `No, ${which} not in ${row.class}`)}</td></tr>`;
}

function cell(row, key) {
  if (key === "class") return [mark(row.class), row.class];
  if (key === "probability") return percent(row.probability);
  if (key === "member") return row.member === null ? "–" : percent(row.member);
  if (key === "degree") return number(row.degree);
  if (key === "known") return row.known ?? "–";
  const { count = 1, nodes = [] } = row.group ?? {};
  return [link(row.node, { class: "link name" }), count > 1 && html`<details class="like small"><summary>and ${number(count - 1)} like it</summary>
    ${nodes.slice(0, 10).join(", ")}${count > 11 && ` and ${number(count - 11)} more`}</details>`, row.attached && html`<span class="badge">new</span>`];
}

// --- the list and the classes as files: what they hold is what the page says ---

const quoted = (value) => (/[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
function Selected({ rows }) {
  const how = { ...judging(), model: state.model.method_name, version: state.version };
  const fields = ["node", "class", "probability", "member", "degree", "known", "verdict"];
  const lines = [[...fields, ...Object.keys(how)], ...rows.map((row) => [...fields.map((f) => row[f]), ...Object.values(how)])];
  const take = () => desk.download(new Blob([lines.map((line) => `${line.map(quoted).join()}\n`).join("")], { type: "text/csv" }), "selected.csv");
  return button("the selected rows", take, { class: "plain small" });
}

function Exports() {
  const described = state.classes.some((c) => c.description !== null);
  const { text, attribute, value, attached, since, sort, descending, columns } = list;
  const narrow = { text, attribute, value, since, ...(attached ? { attached } : {}), sort, descending, attributes: columns };
  const how = { ...judging(), class: about(), ...narrow };
  const source = state.model.trained ? "--run RUN" : `--data ${state.model.data.name}`;
  const file = (name, asked) => button(name, () => attempt(() => desk.save(name, asked)), { class: "plain small", "aria-label": `Download ${name}` });
  return html`<div class="export"><h3>Take it with you</h3>
    <p class="row">${["claims.csv", "claims.parquet", "claims.json"].map((name) => file(name, how))}
      ${chosen().length > 0 && html`<${Selected} rows=${chosen()} />`}</p>
    <${More} title="More: classes and labels for fewnode predict">
      <p class="row">${["support.csv", ...(described ? ["classes.csv"] : [])].map((name) => file(name, {}))}${file("labels.csv", judging())}</p>
      <p class="small soft"><code>fewnode predict ${source} --support support.csv${described ? " --classes classes.csv" : ""} --all --out predictions.csv</code></p></${More}></div>`;
}
