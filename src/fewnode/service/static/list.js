// The list: what the classes claim, to be sorted, filtered, answered in bulk and taken away.

import * as api from "./api.js";
import { decideAll } from "./actions.js";
import { button, byId, el, mark, number, plural, redraw } from "./dom.js";
import { slot } from "./memory.js";
import { onClaims } from "./refresh.js";
import { answered, claimsOf, judging, names, on, state, tell } from "./state.js";
import { attempt, say } from "./status.js";
import { completed } from "./search.js";
import { claimsTable } from "./table.js";
import { exports } from "./take.js";
import { inAddress, shown } from "./views.js";

const PAGE = 50;
const COLUMNS = 20; // attributes that the service shows at most
const panel = byId("list");
// How a list is that nobody has changed.
const USUAL = {
  all: false, // every class, or the active one
  sort: "probability",
  descending: true,
  group: true,
  text: "",
  attribute: "",
  value: "",
  unanswered: true,
  attached: false,
  columns: [], // attributes that are shown
  since: "", // only nodes that came after that moment
};
export const list = {
  ...USUAL,
  rows: null,
  total: 0,
  groups: null,
  selected: new Set(),
};

// The filters that the files have too.
function shared() {
  const { text, attribute, value, attached, since, sort, descending } = list;
  return { text, attribute, value, since, ...(attached ? { attached } : {}), sort, descending, attributes: list.columns };
}

const about = () => (list.all ? null : state.active);

function asked(offset) {
  const { sort, descending, group, text, attribute, value, unanswered, attached, since, columns } = list;
  const filter = Object.fromEntries(
    Object.entries({ text, attribute, value, unanswered, attached, since }).filter(
      ([, given]) => given !== "" && given !== false,
    ),
  );
  const of = about();
  return {
    ...judging(),
    ...(of === null ? {} : { class: of }),
    ...(columns.length ? { attributes: columns } : {}),
    ...{ sort, descending, group: group && state.model.explains, filter, offset, limit: PAGE },
  };
}

// A newer question makes an older one moot.
let latest = 0;
async function load(offset = 0, current = () => true) {
  if (shown() !== "list" || !answered()) return draw();
  const mine = ++latest;
  const found = await api.claims(asked(offset));
  if (mine !== latest || !current()) return;
  list.rows = offset ? [...list.rows, ...found.rows] : found.rows;
  list.total = found.total;
  list.groups = found.groups ?? null;
  const there = new Set(list.rows.map((row) => row.node));
  for (const node of list.selected) if (!there.has(node)) list.selected.delete(node);
  draw();
}

const reload = () => attempt(() => load());
const change = (what) => (Object.assign(list, what), draw(), tell("list"), reload());

// What differs from the usual list is in the address.
inAddress(
  (said) => {
    for (const [key, usual] of Object.entries(USUAL))
      if (Array.isArray(usual)) list[key].forEach((each) => said.append(`list-${key}`, each));
      else if (list[key] !== usual) said.set(`list-${key}`, typeof usual === "boolean" ? Number(list[key]) : list[key]);
  },
  (said) => {
    for (const [key, usual] of Object.entries(USUAL)) {
      const given = said.getAll(`list-${key}`).filter(Boolean);
      if (Array.isArray(usual)) list[key] = given.slice(0, COLUMNS);
      else if (given.length) list[key] = typeof usual === "boolean" ? given[0] === "1" : given[0];
    }
    if (Number.isNaN(Date.parse(list.since))) list.since = "";
  },
);

export function sortBy(column) {
  const same = list.sort === column;
  change({
    sort: column,
    descending: same ? !list.descending : column === "probability" || column === "degree" || column === "member",
  });
}

function draw() {
  if (panel.hidden || !state.model) return;
  if (!answered()) return redraw(panel, el("p", { class: "soft" }, "Nothing is claimed yet. Start a class first."));
  redraw(panel, heading(), filters(), bulk(), content(), list.rows?.length > 0 && exports(about(), shared(), chosen()));
}

function heading() {
  const name = about();
  const count = name === null ? list.total : claimsOf(name);
  return el(
    "header",
    { class: "row" },
    el(
      "h2",
      { class: "grow" },
      list.since ? "New since then" : name === null ? "All claims" : [mark(slot(name)), name],
      count !== null &&
        !list.since &&
        el(
          "span",
          { class: "soft small" },
          ` ${plural(count, "node")} claimed from ${Math.round(100 * state.options.threshold)} % on`,
        ),
    ),
    choice(
      "Of which class",
      "list-class",
      [
        ["", "the active class"],
        ["all", "all classes"],
      ],
      list.all ? "all" : "",
      (v) => change({ all: v === "all" }),
    ),
  );
}

function choice(label, id, options, value, act) {
  const field = el(
    "select",
    { id, "aria-label": label, "data-key": id, onchange: () => act(field.value) },
    options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)),
  );
  return field;
}

function tick(text, key) {
  const box = el("input", {
    type: "checkbox",
    id: `list-${key}`,
    checked: list[key],
    "data-key": key,
    onchange: () => change({ [key]: box.checked }),
  });
  return el("span", { class: "check" }, box, el("label", { for: box.id }, text));
}

function field(label, key, extra = {}) {
  let pause = 0;
  const input = el("input", {
    id: `list-${key}`,
    "aria-label": label,
    placeholder: label,
    autocomplete: "off",
    "data-key": key,
    oninput: () => {
      clearTimeout(pause);
      pause = setTimeout(() => change({ [key]: input.value.trim() }), 250);
    },
    ...extra,
  });
  input.defaultValue = list[key];
  return input;
}

// Attributes as columns of the table.
function columns() {
  const add = completed(
    el("input", {
      id: "list-column",
      "aria-label": "Show an attribute as a column",
      placeholder: "Show an attribute",
      autocomplete: "off",
      "data-key": "column",
      onchange: () => {
        const name = add.value.trim();
        add.value = "";
        if (name && !list.columns.includes(name)) widen(name);
      },
    }),
  );
  const without = (name) => () =>
    change({ columns: list.columns.filter((other) => other !== name), sort: "probability" });
  return [
    add,
    list.columns.map((name) =>
      button(`${name} ×`, without(name), { class: "plain small", "aria-label": `${name} ×: hide this column` }),
    ),
  ];
}

// A name that no attribute has is refused by the service, and no column.
async function widen(name) {
  const before = list.columns;
  list.columns = [...before, name];
  if (await attempt(() => load())) return tell("list");
  list.columns = before;
  reload();
}

const YESTERDAY = 24 * 3600 * 1000;

function filters() {
  const since = el("input", {
    type: "datetime-local",
    id: "list-since",
    "data-key": "since",
    onchange: () => change({ since: since.value ? new Date(since.value).toISOString() : "" }),
  });
  if (list.since) since.defaultValue = local(list.since);
  const fold = el(
    "details",
    { class: "filters", open: folded, ontoggle: () => (folded = fold.open) },
    el("summary", { class: "small soft", "data-key": "filters" }, narrowed() ? "Filters, some of them set" : "Filters"),
    el(
      "p",
      { class: "row" },
      field("Filter by name or text", "text", { type: "search" }),
      completed(field("Attribute", "attribute")),
      field("Value", "value"),
    ),
    el(
      "p",
      { class: "row small" },
      columns(),
      state.model.explains && tick("Group near-duplicates", "group"),
      tick("Only unanswered", "unanswered"),
      tick("Only new nodes", "attached"),
      el(
        "span",
        { class: "since" },
        el("label", { for: "list-since" }, "New since"),
        since,
        list.since
          ? button("All claims", () => change({ since: "" }), { class: "quiet" })
          : button("Yesterday", () => change({ since: new Date(Date.now() - YESTERDAY).toISOString() }), {
              class: "quiet",
            }),
      ),
    ),
  );
  return fold;
}

let folded = matchMedia("(min-width: 1001px)").matches; // open where there is room
const narrowed = () => list.text !== "" || list.attribute !== "" || list.attached || list.since !== "";

const local = (iso) => new Date(Date.parse(iso) - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

// --- answers in bulk ---

// A row that stands for near-duplicates stands for all of them that the service named.
export const members = (row) =>
  list.group && row.group ? [row.node, ...row.group.nodes.filter((n) => n !== row.node)] : [row.node];
const chosen = () => (list.rows ?? []).filter((row) => list.selected.has(row.node));

function bulk() {
  const rows = chosen();
  const count = rows.flatMap(members).length;
  const say = (verdict) =>
    attempt(async () => {
      const byClass = Map.groupBy ? Map.groupBy(rows, (row) => row.class) : grouped(rows);
      list.selected.clear();
      for (const [name, of] of byClass) await decideAll(of.flatMap(members), name, verdict);
    });
  const off = rows.length === 0;
  return el(
    "p",
    { class: "row bulk" },
    el("span", { class: "grow small" }, off ? told() : `${plural(count, "node")} selected`),
    button("Accept", () => say("yes"), { class: "solid", disabled: off, "data-letter": "y", "data-key": "accept" }),
    button("Reject", () => say("no"), { class: "solid", disabled: off, "data-letter": "n", "data-key": "reject" }),
    button("Clear", () => (list.selected.clear(), draw()), { class: "quiet", disabled: off, "data-key": "clear" }),
  );
}

function grouped(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.class, [...(found.get(row.class) ?? []), row]);
  return found;
}

function told() {
  if (!list.rows) return "Asking…";
  const kinds =
    list.groups !== null && list.group && list.groups !== list.total ? ` in ${number(list.groups)} kinds` : "";
  const keys = matchMedia("(any-hover: hover)").matches ? ", or press y or n on one" : ""; // a phone has no keys
  return `${plural(list.total, "node")}${kinds}. Select rows${keys}.`;
}

function content() {
  if (!list.rows) return el("p", { class: "soft" }, "Asking what is claimed…");
  if (!list.rows.length)
    return el(
      "p",
      { class: "soft" },
      list.since ? "No class claims a node that came since." : "No node. Lower the threshold, or filter less.",
    );
  const more = (list.group && list.groups !== null ? list.groups : list.total) - list.rows.length;
  return [
    claimsTable(list, {
      draw,
      about: about(),
      act: (row, verdict) => attempt(() => decideAll(members(row), row.class, verdict)),
    }),
    more > 0 &&
      button(`Show ${number(Math.min(PAGE, more))} more`, () => attempt(() => load(list.rows.length)), {
        class: "plain",
        "data-key": "more",
      }),
  ];
}

panel.addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=checkbox]), select") || event.ctrlKey || event.metaKey || event.altKey)
    return;
  const rows = [...panel.querySelectorAll("tbody tr")];
  const here = rows.indexOf(event.target.closest("tr"));
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  const verdict = { y: "yes", n: "no" }[event.key];
  if (step && here >= 0) {
    event.preventDefault();
    rows[Math.min(rows.length - 1, Math.max(0, here + step))].querySelector("input").focus();
  } else if (verdict && (list.selected.size || here >= 0)) {
    event.preventDefault();
    event.stopPropagation();
    if (list.selected.size) return panel.querySelector(`[data-key=${verdict === "yes" ? "accept" : "reject"}]`).click();
    const row = list.rows[here];
    say(`${row.node}: ${verdict}`);
    attempt(() => decideAll(members(row), row.class, verdict));
  }
});

onClaims((current) => load(0, current));
on("view", () => shown() === "list" && reload());
on("active", () => (list.selected.clear(), shown() === "list" && !list.all && ((list.rows = null), reload())));
on("classes trust options", () => names().length && draw());
