// The journal: a strip that is always in sight, and all of it as a view.

import * as api from "./api.js";
import { save, step } from "./actions.js";
import { button, byId, el, number, plural, redraw } from "./dom.js";
import { signed } from "./memory.js";
import { unsaved } from "./queue.js";
import { on, state } from "./state.js";
import { attempt } from "./status.js";
import { show } from "./views.js";

const PAGE = 100;
const strip = byId("journal");
const panel = byId("history");
let older = []; // entries beyond the newest

function move(way, text, letter) {
  return button(text, () => attempt(() => step(way)), {
    class: "plain",
    disabled: !state.journal?.[way],
    "aria-keyshortcuts": letter,
    "data-letter": letter,
    "data-key": way,
  });
}

function draw() {
  const last = state.journal?.entries.find((e) => !e.undone);
  redraw(
    strip,
    move("undo", "Undo", "u"),
    move("redo", "Redo", "r"),
    unsaved() > 0 && el("strong", { class: "unsaved" }, `${number(unsaved())} unsaved`),
    el(
      "span",
      { class: "last" },
      last ? [el("span", { class: "soft" }, `${clock(last.when)} `), last.what] : "Nothing was said yet.",
    ),
    state.journal?.total > 0 &&
      button(plural(state.journal.total, "entry").replace("entrys", "entries"), () => show("history", true), {
        class: "link soft",
        "data-key": "journal",
      }),
  );
}

const clock = (when) => new Date(when).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
const moment = (when) => new Date(when).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

function whole() {
  if (panel.hidden || !state.model) return;
  const { entries = [], total = 0 } = state.journal ?? {};
  const listed = [...entries, ...older];
  redraw(
    panel,
    el("h2", {}, "History"),
    el(
      "p",
      { class: "soft small" },
      "Every change, the newest first. The service keeps it; Undo goes back one step at a time.",
    ),
    who(),
    el(
      "p",
      { class: "row" },
      el("span", { class: "small" }, "Take it with you"),
      ["journal.csv", "journal.json"].map((file) =>
        button(file, () => attempt(() => save(file, {})), { class: "plain small", "aria-label": `Download ${file}` }),
      ),
    ),
    el(
      "ol",
      { class: "entries" },
      listed.map((e) =>
        el(
          "li",
          { class: e.undone ? "undone" : "" },
          el("time", { class: "soft small num", datetime: e.when }, moment(e.when)),
          el("span", { class: "name" }, e.what, e.undone && el("span", { class: "soft" }, " (undone)")),
          el("span", { class: "soft small" }, e.by ?? ""),
        ),
      ),
    ),
    listed.length < total && button("Show older ones", more, { class: "plain", "data-key": "older" }),
  );
}

function who() {
  const field = el("input", {
    id: "by",
    maxlength: "80",
    autocomplete: "name",
    placeholder: "nobody is named",
    "data-key": "by",
    onchange: () => signed(field.value.trim()),
  });
  field.defaultValue = state.by;
  return el("p", { class: "row who" }, el("label", { for: "by" }, "Your name, for the journal"), field);
}

const more = () =>
  attempt(async () => {
    const from = (state.journal?.entries.length ?? 0) + older.length;
    older = [...older, ...(await api.journal(PAGE, from)).entries];
    whole();
  });

on("journal", () => (older = []));
on("model journal unsaved", draw);
on("model view journal", whole);
