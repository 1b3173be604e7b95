// Requests to the service. Whatever goes wrong is a Trouble: what happened and what to do, in words.

export class Trouble extends Error {
  constructor(kind, message, hint = "") {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

const PATIENCE = 30_000;
const KEEPALIVE = 60_000; // bytes of a request that may outlive the page
const RETRIES = 4;

const WORDS = {
  401: [
    "locked",
    "This page's key is no longer valid.",
    "Open the link that fewnode serve printed when it started, or the one it prints when you start it again.",
  ],
  403: [
    "refused",
    "The service refuses this page.",
    "Open it by the link that fewnode serve printed, on the same computer.",
  ],
  412: [
    "conflict",
    "Someone else changed the classes meanwhile, so your change was not made.",
    "You now see the classes as they are. Make your change again if you still want it.",
  ],
  429: ["busy", "The service has more to do than it can.", "Wait a moment and try again."],
  503: [
    "starting",
    "The service is not ready.",
    "It is still reading the network, which takes longest at the very first start, or it is shutting down. This page goes on by itself.",
  ],
};

let busy = () => {};
export const onBusy = (listener) => (busy = listener);

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

async function send(method, path, body, version) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (version) headers["If-Match"] = version;
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      keepalive: method !== "GET" && (JSON.stringify(body) ?? "").length < KEEPALIVE,
      signal: AbortSignal.timeout(PATIENCE),
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "TimeoutError")
      throw new Trouble(
        "slow",
        `The service did not answer within ${PATIENCE / 1000} seconds.`,
        "It may be overloaded. Try again.",
      );
    throw new Trouble(
      "gone",
      "The service does not answer.",
      "It was stopped, or it crashed. Start it again with fewnode serve; this page goes on by itself.",
    );
  }
}

async function told(response) {
  let said = {};
  try {
    said = await response.json();
  } catch {
    // not JSON: the status alone must do
  }
  const [kind, message, hint] = WORDS[response.status] ?? [
    "wrong",
    `The service answered with error ${response.status}.`,
    "",
  ];
  if (kind !== "wrong") return new Trouble(kind, message, hint);
  return new Trouble(
    response.status < 500 ? kind : "failing",
    typeof said.error === "string" ? said.error : message,
    typeof said.hint === "string" ? said.hint : hint,
  );
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
const bytes = async (path) => (await request("GET", path)).arrayBuffer();
const named = (kind, name) => `/api/${kind}/${encodeURIComponent(name)}`;

// Only what is given; of a list, each.
function query(path, given) {
  const asked = Object.entries(given)
    .flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
    .filter(([, value]) => value !== null && value !== undefined && value !== "");
  return asked.length ? `${path}?${new URLSearchParams(asked)}` : path;
}

export const model = () => json("GET", "/api/model");
export const search = (asked) => json("GET", query("/api/nodes", asked));
export const attributes = (text) => json("GET", query("/api/attributes", { search: text, limit: 20 }));
export const node = (name) => json("GET", named("nodes", name));
export const examples = () => json("GET", "/api/examples");
export const map = () => bytes("/api/map.bin");
export const mapClaims = (how) => bytes(query("/api/map/claims.bin", how));
export const namesOf = (rows) => json("GET", query("/api/names", { rows: rows.join() }));
export const classes = () => json("GET", "/api/classes");
export const put = (name, given, version) => json("PUT", named("classes", name), given, version);
export const remove = (name, by, version) => json("DELETE", query(named("classes", name), by), undefined, version);
export const classify = (body) => json("POST", "/api/classify", body);
export const answers = (body) => json("POST", "/api/answers", body);
export const next = (body) => json("POST", "/api/next", body);
export const undo = (by) => json("POST", "/api/undo", by);
export const redo = (by) => json("POST", "/api/redo", by);
export const journal = (limit, offset = 0) => json("GET", query("/api/journal", { limit, offset }));
export const trust = (how) => json("GET", query("/api/trust", how));
export const why = (name, about) => json("GET", query(named("why", name), { class: about }));
export const claims = (body) => json("POST", "/api/claims", body);
export const list = (text) => json("POST", "/api/lists", { text });
export const columns = () => json("GET", "/api/columns");
export const attach = (body) => json("POST", "/api/nodes", body);
export const file = async (name, how) => (await request("GET", query(`/api/export/${name}`, how))).blob();
// Nobody waits for what a page sends while it is closed.
export const last = (path, body) =>
  fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, keepalive: true }).catch(() => {});
// Whether asking again is worth while: it answers or, if the key is no longer valid, says so.
export const back = () =>
  send("GET", "/health/ready").then(
    (response) => response.ok || response.status === 401,
    () => false,
  );
