// What this tab remembers: nodes that were set aside, and how well it went.

import { labelled, state } from "./state.js";

// What was found of the same classes, judged in the same way, makes one curve; anything else starts another.
const memory = () => `fewnode ${state.model.data.name}`;

export function remember({ precision, recall: found }) {
  const of = JSON.stringify([state.classes.map((c) => c.name).sort(), state.options]);
  if (state.history.of !== of) state.history = Object.assign([], { of });
  if (!precision || !found) return;
  const point = { labelled: labelled(), right: precision.value, found: found.value };
  const last = state.history.at(-1);
  if (last?.labelled === point.labelled) state.history.pop();
  state.history.push(point);
  keep();
}

export function keep() {
  const { history, answered } = state;
  sessionStorage.setItem(memory(), JSON.stringify({ of: history.of, points: history, answered: [...answered] }));
}

export function recall() {
  try {
    const { of, points, answered } = JSON.parse(sessionStorage.getItem(memory())) ?? {};
    if (Array.isArray(points)) state.history = Object.assign(points, { of });
    if (Array.isArray(answered)) state.answered = new Map(answered);
  } catch {
    sessionStorage.removeItem(memory()); // written by another version of the page
  }
}
