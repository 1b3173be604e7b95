// The page of `fewnode serve`: starts the parts and reads the network.

import "./search.js";
import "./node.js";
import "./map.js";
import "./ask.js";
import "./classes.js";
import { byId, plural } from "./dom.js";
import { on, state } from "./state.js";
import { open } from "./refresh.js";
import { attempt } from "./status.js";

on("model", () => {
  const { data, method_name: method, way, shot, trained } = state.model;
  const how = trained ? `trained ${way}-way ${shot}-shot` : "without training";
  if (state.model.describes) document.querySelector("h1").textContent = "Name a class by a few nodes, or by a sentence.";
  document.title = `fewnode · ${data.name}`;
  byId("dataset").textContent =
    `${data.name} · ${plural(data.nodes, "node")}, ${plural(data.edges, "edge")} · ${method}, ${how}`;
});
on("classes", () => (byId("version").textContent = state.version ? `state ${state.version.slice(0, 12)}` : ""));

attempt(open);
