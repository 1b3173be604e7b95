// What this tab remembers: nodes that were set aside, and how accuracy grew.

import { labelled, state } from "./state.js";

// Accuracies of the same set of classes make one curve; another set of classes starts another.
const memory = () => `fewnode ${state.model.data.name}`;

export function remember(accuracy) {
  const of = JSON.stringify(state.classes.map((c) => c.name).sort());
  if (state.history.of !== of) state.history = Object.assign([], { of });
  const point = { labelled: labelled(), accuracy };
  const last = state.history.at(-1);
  if (accuracy === null || (last && last.labelled === point.labelled && last.accuracy === accuracy)) return;
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
