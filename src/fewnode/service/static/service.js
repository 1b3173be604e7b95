// The service: requests, whose troubles are words, and answers, which are kept in this browser until the service has them.

export class Trouble extends Error {
  constructor(kind, message, hint = "") {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

const PATIENCE = 30_000;
const RETRIES = 4;
const KEEPALIVE = 60_000; // bytes that a browser sends on after its page is closed
const WORDS = {
  401: ["locked", "This page's key is no longer valid.", "Open the link that fewnode serve printed when it started last."],
  403: ["refused", "The service refuses this page.", "Open it by the link that fewnode serve printed."],
  412: [
    "conflict",
    "Someone else changed the classes meanwhile, so your change was not made.",
    "You now see the classes as they are. Make your change again if you still want it.",
  ],
  429: ["busy", "The service has more to do than it can.", "Wait a moment and try again."],
};

let busy = () => {};
export const onBusy = (listener) => (busy = listener);
export const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

async function send(method, path, body, version) {
  const headers = { Accept: "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  if (text !== undefined) headers["Content-Type"] = "application/json";
  if (version) headers["If-Match"] = version;
  const keepalive = method !== "GET" && (text ?? "").length < KEEPALIVE;
  const signal = AbortSignal.timeout(PATIENCE);
  try {
    return await fetch(path, { method, headers, body: text, keepalive, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "TimeoutError")
      throw new Trouble("slow", `The service did not answer within ${PATIENCE / 1000} seconds.`, "Try again.");
    const hint = "It was stopped, or this computer is offline. Start it again with fewnode serve; this page goes on by itself.";
    throw new Trouble("gone", "The service does not answer.", hint);
  }
}

async function told(response) {
  const said = await response.json().catch(() => ({}));
  if (response.status === 503) return new Trouble("starting", said.error ?? "The service is not ready.", said.hint);
  if (WORDS[response.status]) return new Trouble(...WORDS[response.status]);
  const kind = response.status < 500 ? "wrong" : "failing";
  return new Trouble(kind, said.error ?? `The service answered with error ${response.status}.`, said.hint);
}

async function request(method, path, body, version) {
  for (let again = 0; ; again++) {
    const response = await send(method, path, body, version);
    if (response.ok) return response;
    if (response.status !== 429 || again === RETRIES) throw await told(response);
    const seconds = Math.min(10, Math.max(0.2, Number(response.headers.get("Retry-After")) || 1));
    busy(seconds); // refused before anything was done: asking again is safe, for changes too
    await wait(seconds);
  }
}

const json = async (...asked) => (await request(...asked)).json();
const post = (path) => (body) => json("POST", path, body);
const named = (kind, name) => `/api/${kind}/${encodeURIComponent(name)}`;

// Only what is given; of a list, each.
function query(path, given) {
  const asked = Object.entries(given)
    .flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
    .filter(([, value]) => value !== null && value !== undefined && value !== "");
  return asked.length ? `${path}?${new URLSearchParams(asked)}` : path;
}

export const now = post("/api/now");
export const version = () => json("GET", "/api/version");
export const search = (asked) => json("GET", query("/api/search", asked));
export const attributes = (text) => json("GET", query("/api/attributes", { search: text, limit: 20 }));
export const node = (name) => json("GET", named("nodes", name));
export const bytes = async (path, how = {}) => (await request("GET", query(path, how))).arrayBuffer();
export const namesOf = (rows) => json("GET", query("/api/names", { rows: rows.join() }));
export const put = (name, given, version) => json("PUT", named("classes", name), given, version);
export const remove = (name, by, version) => json("DELETE", query(named("classes", name), by), undefined, version);
export const classify = post("/api/classify");
export const undo = post("/api/undo");
export const redo = post("/api/redo");
export const journal = (limit, offset) => json("GET", query("/api/journal", { limit, offset }));
export const why = (name, about) => json("GET", query(named("why", name), { class: about }));
export const claims = (asked) => json("GET", query("/api/claims", asked));
export const list = (text) => json("POST", "/api/lists", { text });
export const columns = () => json("GET", "/api/columns");
export const attach = post("/api/nodes");
export const file = async (name, how) => (await request("GET", query(`/api/export/${name}`, how))).blob();
// Whether asking again is worth while: it answers or, if the key is no longer valid, says so.
export const back = () =>
  send("GET", "/health/ready").then(
    (response) => response.ok || response.status === 401,
    () => false,
  );

// --- answers on their way: each has an id, by which the service counts it once, however often it comes ---

const PAUSE = 3000; // until what failed is tried again
let prefix = "";
let waiting = new Map(); // key -> {id, answers, check, by, question}
let changed = () => {};

export const unsaved = () => [...waiting.values()].reduce((sum, item) => sum + item.answers.length, 0);
export const isPending = (node) => [...waiting.values()].some((item) => item.answers.some((one) => one.node === node));

// What an earlier visit, or another tab, could not send is sent by this one.
export function recallAnswers(network, listener) {
  [prefix, changed] = [`fewnode answers ${network} `, listener];
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
    waiting = new Map([...keys.sort().map((key) => [key, JSON.parse(localStorage[key])]), ...waiting]);
  } catch {
    // storage is off, or something else wrote there
  }
}

export function keepAnswers(item) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16)).join("");
  const key = `${prefix}${Date.now()} ${String(waiting.size).padStart(6, "0")} ${id}`;
  waiting.set(key, { ...item, id });
  try {
    localStorage[key] = JSON.stringify({ ...item, id });
  } catch {
    // storage is off or full: it waits in this tab, which warns before it is closed
  }
  changed();
}

function forget(key) {
  waiting.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // storage is off
  }
  changed();
}

const asked = ({ id, answers, check, by }) => ({ id, answers, check, ...(by ? { by } : {}) });

// Sends what waits, in the order it was given. What the service refuses for good is handed to `refused`; what it cannot take
// now stays, and is tried again. `saved` is waited for, but sending is not kept waiting by it.
let sending = null;
let following = null;
let again = 0;
export async function sendAnswers(saved, refused) {
  if (waiting.size) await (sending ??= drain(saved, refused));
  await following;
}

async function drain(saved, refused) {
  clearTimeout(again);
  try {
    while (waiting.size) await sendFirst(saved, refused);
  } catch (error) {
    again = setTimeout(() => sendAnswers(saved, refused).catch(() => {}), PAUSE);
    throw error;
  } finally {
    sending = null; // in the same turn as the last look at what waits: an answer that comes now is sent by another one
  }
}

async function sendFirst(saved, refused) {
  const [key, item] = waiting.entries().next().value;
  try {
    const found = await json("POST", "/api/answers", asked(item));
    forget(key);
    following = saved(found);
    following.catch(() => {}); // told to who waits for it
  } catch (error) {
    if (error.kind !== "wrong") throw error;
    forget(key);
    refused(error, item);
  }
}

// A page that is closed sends what it can; an answer that changes one before it waits for the next visit.
addEventListener("pagehide", () => {
  let room = KEEPALIVE;
  const nodes = new Set();
  for (const item of waiting.values()) {
    const body = JSON.stringify(asked(item));
    const first = item.answers.every((one) => !nodes.has(one.node));
    item.answers.forEach((one) => nodes.add(one.node));
    const headers = { "Content-Type": "application/json" };
    if (first && (room -= body.length) > 0)
      fetch("/api/answers", { method: "POST", headers, body, keepalive: true }).catch(() => {});
  }
});
addEventListener("beforeunload", (event) => waiting.size && event.preventDefault());
