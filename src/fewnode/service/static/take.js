// The list and the classes as files: what they hold is what the page says.

import { download, save } from "./actions.js";
import { button, el } from "./dom.js";
import { judging, state } from "./state.js";
import { attempt } from "./status.js";

const quoted = (value) =>
  /[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");

// The rows that are selected, as they are on the screen.
function selected(rows) {
  const { method_name: model } = state.model;
  const how = { ...judging(), model, version: state.version };
  const fields = ["node", "class", "probability", "member", "degree", "known", "verdict"];
  const head = [...fields, ...Object.keys(how)];
  const lines = rows.map((row) => [...fields.map((f) => row[f]), ...Object.values(how)]);
  return new Blob([[head, ...lines].map((line) => `${line.map(quoted).join()}\n`).join("")], { type: "text/csv" });
}

// `filter`: what the list is narrowed to. Answered nodes are in the file all the same, with their verdict.
export function exports(about, filter, rows) {
  const described = state.classes.some((c) => c.description !== null);
  const how = { ...judging(), class: about, ...filter };
  const source = state.model.trained ? "--run RUN" : `--data ${state.model.data.name}`;
  const file = (name, asked) =>
    button(name, () => attempt(() => save(name, asked)), { class: "plain small", "aria-label": `Download ${name}` });
  return el(
    "div",
    { class: "export" },
    el("h3", {}, "Take it with you"),
    el(
      "p",
      { class: "row" },
      ["claims.csv", "claims.parquet", "claims.json"].map((name) => file(name, how)),
      rows.length > 0 &&
        button("the selected rows", () => download(selected(rows), "selected.csv"), { class: "plain small" }),
    ),
    el(
      "p",
      { class: "row" },
      ["support.csv", ...(described ? ["classes.csv"] : [])].map((name) => file(name, {})),
      file("labels.csv", judging()),
    ),
    el(
      "p",
      { class: "small soft" },
      "Claims are all nodes of the list, answered ones too, with verdicts, threshold, model and state. fewnode predict takes support.csv: ",
      el(
        "code",
        {},
        `fewnode predict ${source} --support support.csv${described ? " --classes classes.csv" : ""} --all --out predictions.csv`,
      ),
    ),
  );
}
