// The sentence of a class: a box that registers it when typing ends, and under it what was not understood.

import { describe, refusal } from "./actions.js";
import { button, byId, el } from "./dom.js";
import { classNamed, state } from "./state.js";
import { attempt, say } from "./status.js";

const PAUSE = 700; // without a key: typing has ended
const timers = new Map(); // box -> what waits for the end of typing
const refused = new Map(); // box -> the sentence that the service, or this page, answered with

// The box of a class, or of the class that is about to be named.
const keyOf = (name) => (name === null ? "sentence" : `sentence ${name}`);

export function box(name) {
  if (!state.model.describes) return null;
  const key = keyOf(name);
  const id = name === null ? "new-sentence" : "class-sentence";
  const { description = null, remarks = [] } = (name !== null && classNamed(name)) || {};
  const field = el("textarea", {
    id,
    rows: "2",
    maxlength: String(state.model.limits.description),
    "aria-label": name === null ? "What the new class is, in a sentence" : `What ${name} is, in a sentence`,
    "aria-describedby": `${id}-note`,
    "data-key": key,
    placeholder: description === "" ? "its name speaks for it" : "send, receive and filter e-mail",
    oninput: () => later(name),
  });
  field.defaultValue = description ?? "";
  const why = refused.get(key);
  return el(
    "div",
    { class: "sentence" },
    field,
    el(
      "ul",
      { id: `${id}-note`, class: `small ${why ? "error" : "soft"}` },
      (why ? [why] : remarks).map((remark) => el("li", {}, sentence(remark))),
    ),
    name !== null &&
      classNamed(name) === undefined &&
      button("Let its name speak", () => attempt(() => settle(name, "")), {
        class: "quiet small",
        "data-key": `${key} name`,
      }),
  );
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
const find = (name) => document.querySelector(`[data-key="${CSS.escape(keyOf(name))}"]`);

function later(name) {
  clearTimeout(timers.get(keyOf(name)));
  timers.set(
    keyOf(name),
    setTimeout(() => ended(name), PAUSE),
  );
}

// At once, for who presses the button or Enter.
export const now = (name, text) => (clearTimeout(timers.get(keyOf(null))), attempt(() => settle(name, text, true)));

function ended(name) {
  const text = find(name)?.value.trim();
  if (text === undefined) return;
  if (name !== null) return attempt(() => settle(name, text));
  const called = byId("class-name").value.trim();
  if (text === "") return tell(null, null);
  const reason = called === "" ? "Name the class, and it appears on the map." : refusal(called);
  if (reason) return tell(null, reason);
  attempt(() => settle(called, text, true));
}

// Keeps the sentence. What the service refuses is told under the box, which keeps what was typed.
async function settle(name, text, fresh = false) {
  const known = classNamed(name);
  const key = fresh ? null : name;
  if (known && text === (known.description ?? "")) return tell(key, null);
  if (text === "" && known && known.support.length === 0) return tell(key, "A class needs a sentence or a node.");
  try {
    await describe(name, known && text === "" ? null : text, () => fresh && move(name, text));
    tell(key, null);
    const told = classNamed(name)?.remarks ?? [];
    if (told.length) say(`${name}: ${told.join("; ")}.`);
  } catch (error) {
    if (error.kind !== "wrong") throw error;
    tell(key, error.message);
    say(error.message);
  }
}

// The class has a box of its own now. Who is still typing goes on there.
function move(name, text) {
  const [from, to, title] = [find(null), find(name), byId("class-name")];
  if (!from || !to) return;
  const typed = from.value;
  const typing = document.activeElement === from;
  to.value = typed;
  if (typing) {
    to.focus({ preventScroll: true });
    to.setSelectionRange(from.selectionStart, from.selectionEnd);
  }
  from.value = title.value = "";
  if (typed.trim() !== text) later(name);
}

// In place, so that nobody who types loses the box.
function tell(name, text) {
  const key = keyOf(name);
  if (text === null) refused.delete(key);
  else refused.set(key, text);
  const field = find(name);
  const note = field && byId(`${field.id}-note`);
  if (!note) return;
  const remarks = text === null ? (name !== null && classNamed(name)?.remarks) || [] : [text];
  note.className = `small ${text === null ? "soft" : "error"}`;
  note.replaceChildren(...remarks.map((remark) => el("li", {}, sentence(remark))));
}
