// What the page is doing, and what went wrong, in words.

import * as api from "./api.js";
import { byId, button, el } from "./dom.js";

const POLL = 1500;

export function say(text) {
  byId("status").textContent = text;
}

let running = 0;
function busy(change) {
  running += change;
  document.body.classList.toggle("busy", running > 0);
  document.body.setAttribute("aria-busy", String(running > 0));
}

export const idle = () => running === 0;

// What to do when the service is back, or when its classes are not what this page thought.
let again = async () => {};
export const onReturn = (action) => (again = action);

// Runs an action; its trouble, if any, becomes words. Answers whether all went well.
export async function attempt(action) {
  busy(1);
  try {
    await action();
    return true;
  } catch (error) {
    await trouble(error);
    return false;
  } finally {
    busy(-1);
  }
}

async function trouble(error) {
  if (!(error instanceof api.Trouble)) {
    console.error(error);
    return warn("Something in this page went wrong.", "Reload it; your classes are kept by the service.", [
      "Reload",
      () => location.reload(),
    ]);
  }
  say(error.message);
  if (error.kind === "conflict") {
    await attempt(again);
    return warn(error.message, error.hint);
  }
  if (error.kind === "gone" || error.kind === "starting") {
    warn(error.message, error.hint);
    return watch();
  }
  return warn(error.message, error.hint);
}

export function warn(message, hint, action = null) {
  const box = byId("alert");
  box.hidden = false;
  box.replaceChildren(
    el("p", {}, el("strong", {}, message), " ", hint),
    el("p", { class: "row" }, action && button(...action), button("Dismiss", calm, { class: "quiet" })),
  );
}

export function calm() {
  byId("alert").hidden = true;
  byId("alert").replaceChildren();
}

// The service is gone, or not ready: ask until it is, then see what it has.
let watching = false;
async function watch() {
  if (watching) return;
  watching = true;
  document.body.classList.add("away");
  do await new Promise((done) => setTimeout(done, POLL));
  while (!(await api.back()));
  watching = false;
  document.body.classList.remove("away");
  calm();
  say("The service is back.");
  await attempt(again);
}

api.onBusy((seconds) => say(`The service is busy; asking again in ${seconds} s…`));
