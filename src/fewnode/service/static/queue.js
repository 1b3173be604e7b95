// Answers on their way. Each is kept in this browser until the service has it, and sent until then; its id has it counted once.

import * as api from "./api.js";
import { state, tell } from "./state.js";

const PAUSE = 3000; // until what failed is tried again
const KEEPALIVE = 60_000; // bytes that a browser sends on after its page is closed

const place = () => `fewnode answers ${state.model.data.name} `;
let waiting = new Map(); // key -> {id, answers, check, by, question}

export const unsaved = () => [...waiting.values()].reduce((sum, item) => sum + item.answers.length, 0);
export const isPending = (node) => [...waiting.values()].some((item) => item.answers.some((one) => one.node === node));

function stored() {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(place()))
      .sort()
      .map((key) => [key, JSON.parse(localStorage[key])]);
  } catch {
    return []; // storage is off, or something else wrote there
  }
}

// What an earlier visit, or another tab, could not send is sent by this one.
export function recallAnswers() {
  waiting = new Map([...stored(), ...waiting]);
  tell("unsaved");
}

export function keepAnswers(item) {
  const kept = { ...item, id: Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16)).join("") };
  const key = `${place()}${Date.now()} ${String(waiting.size).padStart(6, "0")} ${kept.id}`;
  waiting.set(key, kept);
  try {
    localStorage[key] = JSON.stringify(kept);
  } catch {
    // storage is off or full: it waits in this tab, which warns before it is closed
  }
  tell("unsaved");
}

function forget(key) {
  waiting.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // storage is off
  }
  tell("unsaved");
}

const request = ({ id, answers, check, by }) => ({ id, answers, check, ...(by ? { by } : {}) });

// Sends what waits, one after the other in the order it was given. What the service refuses for good is handed to
// `refused`; what it cannot take now stays, and is tried again.
let sending = null;
let again = 0;
export function sendAnswers(saved, refused) {
  sending ??= drain(saved, refused).finally(() => (sending = null));
  return sending;
}

async function drain(saved, refused) {
  clearTimeout(again);
  const followed = [];
  while (waiting.size) {
    const [key, item] = waiting.entries().next().value;
    try {
      const found = await api.answers(request(item));
      forget(key);
      followed.push(saved(found, item));
    } catch (error) {
      if (error.kind !== "wrong") {
        again = setTimeout(() => sendAnswers(saved, refused).catch(() => {}), PAUSE);
        throw error;
      }
      forget(key);
      followed.push(refused(error, item));
    }
  }
  await Promise.all(followed);
}

// A page that is closed sends what it can; an answer that changes one before it waits for the next visit.
addEventListener("pagehide", () => {
  let room = KEEPALIVE;
  const nodes = new Set();
  for (const item of waiting.values()) {
    const body = JSON.stringify(request(item));
    const first = item.answers.every((one) => !nodes.has(one.node));
    item.answers.forEach((one) => nodes.add(one.node));
    if (first && (room -= body.length) > 0) api.last("/api/answers", body);
  }
});
addEventListener("beforeunload", (event) => waiting.size && event.preventDefault());
