// The table of claims: a row a node, or a row for several that are nearly the same.

import { lookAt } from "./actions.js";
import { button, el, mark, number, percent } from "./dom.js";
import { members, sortBy } from "./list.js";
import { slot } from "./memory.js";

const COLUMNS = [
  ["node", "Node"],
  ["class", "Class"],
  ["probability", "Probability", "num"],
  ["member", "Member", "num extra"],
  ["degree", "Edges", "num extra"],
  ["known", "In the data", "extra"],
];
const LIKE = 10; // near-duplicates that are named
const SORTED = new Set(["node", "class", "probability", "member", "degree"]);

// `does`: how to draw again, the class the list is about, and what an answer does.
export function claimsTable(list, does) {
  const columns = COLUMNS.filter(
    ([key]) =>
      (key !== "class" || does.about === null) &&
      (key !== "known" || list.rows.some((row) => row.known)) &&
      (key !== "member" || list.rows.some((row) => row.member !== null)),
  );
  const attributes = Object.keys(list.rows[0].attributes ?? {});
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of claims" },
    el(
      "table",
      { class: "claims" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, everything(list, does)),
          columns.map(([key, title, kind]) => header(list, key, title, kind)),
          attributes.map((name) => header(list, name, name, "", true)),
          el("th", { scope: "col" }, "Answer"),
        ),
      ),
      el(
        "tbody",
        {},
        list.rows.map((row) => line(list, row, columns, attributes, does)),
      ),
    ),
  );
}

function everything(list, { draw }) {
  const all = list.rows.length > 0 && list.rows.every((row) => list.selected.has(row.node));
  const box = el("input", {
    type: "checkbox",
    "aria-label": "Select all rows",
    checked: all,
    "data-key": "all rows",
    onchange: () => {
      list.selected = new Set(box.checked ? list.rows.map((row) => row.node) : []);
      draw();
    },
  });
  return box;
}

function header(list, key, title, kind = "", attribute = false) {
  const sorted = list.sort === key ? (list.descending ? "descending" : "ascending") : null;
  const arrow = sorted && el("span", { "aria-hidden": "true" }, list.descending ? " ↓" : " ↑");
  const can = attribute || SORTED.has(key);
  return el(
    "th",
    { scope: "col", class: kind, "aria-sort": sorted },
    can ? button([title, arrow], () => sortBy(key), { class: "head", "data-key": `sort ${key}` }) : title,
  );
}

function line(list, row, columns, attributes, { draw, act }) {
  const { node } = row;
  const box = el("input", {
    type: "checkbox",
    "aria-label": `Select ${node}`,
    checked: list.selected.has(node),
    "data-key": `select ${node}`,
    onchange: () => {
      list.selected[box.checked ? "add" : "delete"](node);
      draw();
    },
  });
  return el(
    "tr",
    { class: row.verdict ?? "" },
    el("td", {}, box),
    columns.map(([key, , kind]) => el("td", { class: kind ?? "" }, cell(row, key))),
    attributes.map((name) => el("td", {}, String(row.attributes[name] ?? ""))),
    el("td", { class: "answers" }, answers(row, act)),
  );
}

function cell(row, key) {
  if (key === "node")
    return [
      button(row.node, lookAt(row.node), { class: "link name", "data-key": `row ${row.node}` }),
      like(row),
      row.attached && el("span", { class: "badge" }, "new"),
    ];
  if (key === "class") return [mark(slot(row.class)), row.class];
  if (key === "probability") return percent(row.probability);
  if (key === "member") return row.member === null ? "–" : percent(row.member);
  if (key === "degree") return number(row.degree);
  return row.known ?? "–";
}

function like({ node, group }) {
  if (!group || group.count < 2) return null;
  const others = group.nodes.filter((other) => other !== node).slice(0, LIKE);
  const rest = group.count - 1 - others.length;
  return el(
    "details",
    { class: "like small" },
    el("summary", {}, `and ${number(group.count - 1)} like it`),
    others.join(", "),
    rest > 0 && ` and ${number(rest)} more`,
  );
}

function answers(row, act) {
  const one = (text, verdict, label) =>
    button(text, () => act(row, row.verdict === verdict ? null : verdict), {
      class: "quiet",
      "aria-label": label,
      "aria-pressed": String(row.verdict === verdict),
      "data-key": `${verdict} ${row.node}`,
    });
  const many = members(row).length - 1;
  const which = many ? `${row.node} and ${number(many)} like it are` : `${row.node} is`;
  return [
    one("✓", "yes", `Yes, ${which} in ${row.class}`),
    one("✗", "no", `No, ${which} not in ${row.class}`),
  ];
}
