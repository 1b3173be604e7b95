// What this browser remembers of a network: the colours of its classes, and who answers.

import { names, state } from "./state.js";

const MANY = 12; // looks; where more are taken, a class that is no more gives its own away
const MOST = 500; // names of classes that are remembered

const key = () => `fewnode ${state.model?.data.name ?? ""}`;
let slots = null;

function kept() {
  try {
    return JSON.parse(localStorage.getItem(key())) ?? {};
  } catch {
    return {}; // written by another version of the page, or storage is off
  }
}

function keep() {
  try {
    localStorage.setItem(key(), JSON.stringify({ slots: [...slots].slice(-MOST), by: state.by }));
  } catch {
    // storage is off: colours hold for this visit
  }
}

export function recall() {
  const { slots: before, by } = kept();
  slots = new Map(Array.isArray(before) ? before : []);
  state.by = typeof by === "string" ? by : "";
}

export function signed(by) {
  state.by = by.slice(0, 80);
  keep();
}

// A class keeps its colour and shape, also when it, or another one, was deleted and comes again.
export function slot(name) {
  if (name === null || name === undefined) return -1;
  slots ??= new Map();
  if (!slots.has(name)) {
    const taken = new Set(slots.values());
    let free = 0;
    while (taken.has(free)) free++;
    const present = new Set(names());
    const gone = free < MANY ? undefined : [...slots.keys()].find((other) => !present.has(other));
    if (gone !== undefined) {
      free = slots.get(gone);
      slots.delete(gone);
    }
    slots.set(name, free);
    keep();
  }
  return slots.get(name);
}
