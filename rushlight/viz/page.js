"use strict";
// The page's data: nodes, edges and steps as rushlight's engine went through them, and a table of numbers they point into.
const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, edges, steps, numbers } = data;
const at = id => document.getElementById(id);
const SVG = document.getElementById("picture").namespaceURI;
let k = 0, chosen = null, playing = null, scale = 1;

// -- elements ---------------------------------------------------------------------------------------------------------

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  return filled(made, attributes, children);
}
function drawn(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

// -- numbers ----------------------------------------------------------------------------------------------------------

function written(value, digits = 6) {
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(digits)))
    : value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
}

function shade(part) {            // part: from -1 to 1
  return `background: rgba(var(--${part < 0 ? "minus" : "plus"}), ${(Math.abs(part) * 0.55).toFixed(2)})`;
}

function level(letter) {
  const code = letter.charCodeAt(0);
  return letter === "." ? 0 : code < 91 ? (code - 64) / 26 : -(code - 96) / 26;
}

function shown(i) {               // the numbers of one array: all of them, or facts and a coarse picture
  if (i === null || i === undefined) return element("span", { class: "soft" }, "not kept: backward does not need it");
  const array = numbers[i], shape = array.shape;
  if (array.parts)
    return element("div", {}, ...array.parts.map(([name, j]) => element("div", {}, `output ${name}: `, shown(j))));
  const box = element("div", { class: "numbers" });
  if (array.values && !array.cut) {
    const columns = shape.length ? shape[shape.length - 1] : 1;
    const top = Math.max(...array.values.map(v => Math.abs(v)).filter(Number.isFinite), 1e-300);
    const rows = [];
    for (let from = 0; from < array.values.length; from += columns)
      rows.push(element("tr", {}, ...array.values.slice(from, from + columns).map(v =>
        element("td", { style: array.values.length > 1 && typeof v === "number" ? shade(v / top) : null, title: String(v) }, written(v)))));
    box.append(rows.length ? element("table", {}, ...rows) : element("span", { class: "soft" }, "no elements"));
    if (shape.length > 1 || shape.length && !rows.length) box.append(element("div", { class: "facts" }, "shape " + shape.join("×")));
    return box;
  }
  const facts = ["min", "mean", "max"].filter(name => name in array).map(name => `${name} ${written(array[name])}`);
  box.append(element("div", { class: "facts" }, ["shape " + shape.join("×"), ...facts].join(" · ")));
  if (array.cells) {
    box.classList.add("shades");
    box.append(element("table", { "aria-hidden": "true" }, ...array.cells.map(row =>
      element("tr", {}, ...[...row].map(letter => element("td", { style: shade(level(letter)) }))))));
  }
  return box;
}

function brief(i) {               // one short line
  if (i === null || i === undefined) return "";
  const array = numbers[i];
  if (array.parts) return array.parts.length + " outputs";
  if (array.values && array.values.length <= 3 && !array.cut) {
    const all = array.values.map(v => written(v, array.values.length > 1 ? 3 : 5)).join(", ");
    return array.shape.length ? `[${all}]` : all;
  }
  const mean = array.values && !array.cut ? array.values.reduce((a, b) => a + b, 0) / array.values.length : array.mean;
  return array.shape.join("×") + (typeof mean === "number" ? `  ø ${written(mean, 3)}` : "");
}

// -- what is known after k steps --------------------------------------------------------------------------------------

function state() {                // of each node: the gradient that has arrived, whether it was visited, its `.grad`
  const known = nodes.map(node => ({ arrived: null, visited: false, grad: node.grad }));
  known[data.output].arrived = data.seed;
  for (const step of steps.slice(0, k)) {
    const node = known[step.node];
    node.visited = true;
    if (step.incoming !== null) node.arrived = step.incoming;
    if (step.grad) node.grad = step.grad[1];
    for (const a of step.arrivals) known[edges[a.edge].to].arrived = a.total;
  }
  return known;
}

// -- the picture ------------------------------------------------------------------------------------------------------

const boxes = [], lines = [], labels = [];

function draw() {
  const picture = at("picture");
  picture.setAttribute("viewBox", `0 0 ${data.width} ${data.height}`);
  picture.append(drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
    markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" }, drawn("path", { d: "M0 .8 L8 4 L0 7.2 z" }))));
  for (const edge of edges) {
    const line = drawn("path", { class: "edge", d: edge.path, "marker-end": "url(#arrow)" });
    lines.push(line);
    picture.append(line);
  }
  nodes.forEach((node, i) => {
    const x = node.x, left = x - node.width / 2, top = node.y - node.height / 2;
    const words = ["name", "value", "grad"].map((kind, row) =>
      drawn("text", { class: kind, x, y: top + 16 + row * 15, "text-anchor": "middle" }));
    words[0].textContent = node.label;
    const box = drawn("g", { class: `node ${node.kind}`, tabindex: 0, role: "button", "aria-label": node.label, "data-node": i,
      onclick: () => choose(i), onpointerenter: event => point(event, i), onpointerleave: hide, onfocus: () => hide(),
      onkeydown: event => { if (event.key === "Enter") { choose(i); event.stopPropagation(); } } },
      drawn("rect", { x: left, y: top, width: node.width, height: node.height, rx: node.kind === "leaf" ? 14 : 6 }), ...words);
    boxes.push({ box, words });
    picture.append(box);
    shorten(words[0], node.width - 12);
  });
  for (const line of lines) {      // above the boxes: what an edge brings in the step that is shown
    const label = drawn("text", { class: "sent", "text-anchor": "middle", "dominant-baseline": "middle" });
    labels.push(label);
    picture.append(label);
  }
}

function shorten(word, room) {     // a long name keeps its end, which tells it from its neighbours; the panel shows it whole
  let letters = [...word.textContent];
  while (letters.length > 2 && word.getComputedTextLength() > room) {
    letters = letters.slice(Math.max(1, Math.floor(letters.length / 16)));
    word.textContent = "…" + letters.join("");
  }
}

function bring(arrivals) {        // the numbers on their way, each along its edge where no other one stands
  for (const label of labels) label.textContent = "";
  const taken = [];
  const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  arrivals.forEach((a, i) => {
    const line = lines[a.edge], label = labels[a.edge], first = arrivals.length < 2 ? 0.5 : 0.3 + 0.4 * i / (arrivals.length - 1);
    label.textContent = brief(a.gives);
    const at = part => {
      const spot = line.getPointAtLength(line.getTotalLength() * part);
      label.setAttribute("x", spot.x);
      label.setAttribute("y", spot.y);
      return label.getBBox();
    };
    const part = [first, 0.5, 0.7, 0.3, 0.85, 0.15].find(part => !taken.some(other => meet(other, at(part))));
    taken.push(at(part ?? first));
  });
}

function zoom(by) {
  const room = at("room");
  const whole = Math.min(room.clientWidth / data.width, room.clientHeight / data.height, 1.4);
  const least = Math.min(whole, 0.2);
  scale = by ? Math.min(2.5, Math.max(least, scale * 1.25 ** by)) : whole;
  size();
}
function size() {
  at("picture").setAttribute("width", data.width * scale);
  at("picture").setAttribute("height", data.height * scale);
}
function start() {                // readable from the first moment: the whole graph if its letters stay large enough
  const room = at("room");
  const whole = Math.min(room.clientWidth / data.width, room.clientHeight / data.height, 1.4);
  scale = whole > 0.8 ? whole : Math.max(0.8, Math.min(1, room.clientWidth / data.width));
  size();
}
function reveal(i) {
  const room = at("room"), node = nodes[i], offset = Math.max(0, (room.clientWidth - data.width * scale) / 2);
  room.scrollTo(node.x * scale + offset - room.clientWidth / 2, node.y * scale - room.clientHeight / 2);
}

// -- the panel --------------------------------------------------------------------------------------------------------

const link = i => element("button", { type: "button", class: "plain", onclick: () => choose(i) }, nodes[i].label);

function source(node) {
  if (!node.source) return null;
  const { file, line, from, text } = data.sources[node.source];
  return element("div", { class: "source" }, element("div", { class: "place" }, `${file}:${line}`),
    ...text.map((t, i) => element("pre", { class: from + i === line ? "here" : null }, `${String(from + i).padStart(String(from + text.length - 1).length)}  ${t}`)));
}

function card(i) {                // what is known of a node, whatever the step
  const node = nodes[i], known = state()[i];
  return element("div", {},
    element("h3", {}, node.title),
    node.module ? element("p", { class: "soft" }, `in module ${node.module}`) : null,
    node.forward ? element("p", {}, "out = ", element("span", { class: "formula" }, node.forward)) : null,
    source(node),
    element("p", {}, element("b", {}, "value "), shown(node.value)),
    ...node.inputs.map(([name, n]) => element("p", {}, element("b", {}, `${name} `), shown(n))),
    element("p", {}, element("b", {}, node.kind === "leaf" ? ".grad " : "gradient so far "),
      node.kind === "leaf" ? (known.grad === null ? "None" : shown(known.grad))
        : known.arrived === null ? element("span", { class: "soft" }, "nothing has arrived") : shown(known.arrived)));
}

function sent(node, a) {
  const edge = edges[a.edge], rule = node.rules[edge.slot];
  const given = numbers[a.gives], total = numbers[a.total];
  const fits = !given || given.parts || !total.shape || given.shape.join() === total.shape.join();
  return element("div", { class: "send" },
    element("div", {}, "to ", link(edge.to), rule && rule[0] ? element("span", { class: "soft" }, `  (its input ${rule[0]})`) : null),
    rule && rule[1] ? element("div", {}, element("span", { class: "formula" }, rule[1])) : null,
    a.gives === null ? null : shown(a.gives),
    fits ? null : element("div", {}, element("span", { class: "word" }, "summed "), "to the shape before broadcasting"),
    a.first && fits ? null : element("div", { class: "total" },
      a.first ? null : element("span", { class: "word" }, "added: "), a.first ? null : "what has arrived there is now ", shown(a.total)));
}

const HELP = [
  ["→  ←", "next step, previous step"], ["space", "play"], ["Home  End", "first step, last step"], ["+  −  0", "zoom in, zoom out, fit"],
  ["enter, click", "details of a box, with the line of your program"],
  ["g", "the gradient that has arrived so far"], ["ø", "the mean of a large array"],
  [element("i", { class: "output" }), "the output, from which the gradient comes"],
  [element("i", { class: "now" }), "the op of this step"], [element("i", { class: "leaf" }), "a leaf, in whose .grad gradients are added"]];
const legend = rows => element("dl", {}, ...rows.flatMap(([sign, what]) => [element("dt", {}, sign), element("dd", {}, what)]));

function panel() {
  const place = at("step");
  if (chosen !== null) {
    place.replaceChildren(element("p", { class: "soft" }, "Press next to continue."), card(chosen));
    return;
  }
  if (!k) {
    place.replaceChildren(element("h3", {}, "Start"),
      element("p", {}, "Backward starts at ", link(data.output), ", the output, with the gradient of the output with respect to itself:"),
      data.seed === null ? "" : shown(data.seed),
      element("p", { class: "soft" }, `${steps.length} steps follow. Press next, or →.`),
      element("h2", {}, "How to read it"), legend(HELP));
    return;
  }
  const step = steps[k - 1], node = nodes[step.node];
  const parts = [element("p", { class: "soft" }, `Step ${k} of ${steps.length}`), element("h3", {}, node.title),
    node.module ? element("p", { class: "soft" }, `in module ${node.module}`) : null];
  if (node.forward) parts.push(element("p", {}, "out = ", element("span", { class: "formula" }, node.forward)));
  parts.push(source(node));
  if (step.incoming !== null) parts.push(element("h2", {}, "Gradient that arrived: g"), shown(step.incoming));
  if (step.arrivals.length)
    parts.push(element("h2", {}, "Gradients sent on"), ...step.arrivals.map(a => sent(node, a)));
  if (node.inputs.length && step.arrivals.length && step.incoming !== null)
    parts.push(element("h2", {}, "With these values"), ...node.inputs.map(([name, n]) =>
      element("div", { class: "row" }, element("span", { class: "who" }, name), shown(n))),
      element("div", { class: "row" }, element("span", { class: "who" }, "out"), shown(node.value)));
  if (step.grad) {
    const [before, after] = step.grad;
    parts.push(element("h2", {}, "Accumulated into .grad"),
      before === null ? element("p", {}, ".grad was None; now it is") : element("p", {}, ".grad was ", shown(before), " and is now"),
      shown(after));
  }
  place.replaceChildren(...parts.filter(part => part !== null));
}

function leaves(known) {
  const now = k ? steps[k - 1].node : -1;
  at("leaves").replaceChildren(...nodes.map((node, i) => node.kind !== "leaf" ? null
    : element("div", { class: i === now ? "row now" : "row", "data-leaf": node.label },
      element("span", { class: "who" }, link(i)),
      element("span", { class: "soft" }, ".grad"),
      known[i].grad === null ? element("span", { class: "soft" }, "None") : shown(known[i].grad))).filter(row => row !== null));
}

// -- going ------------------------------------------------------------------------------------------------------------

function render() {
  const known = state(), now = k ? steps[k - 1] : null;
  const active = new Set(now ? now.arrivals.map(a => a.edge) : []);
  bring(now ? now.arrivals : []);
  const went = new Set(steps.slice(0, k).flatMap(step => step.arrivals.map(a => a.edge)));
  lines.forEach((line, i) => line.setAttribute("class", "edge" + (active.has(i) ? " now" : went.has(i) ? " went" : "")));
  boxes.forEach(({ box, words }, i) => {
    const node = nodes[i], leaf = node.kind === "leaf";
    box.setAttribute("class", `node ${node.kind}` + (now && now.node === i ? " now" : known[i].visited ? " went" : "")
      + (chosen === i ? " chosen" : ""));
    words[1].textContent = brief(node.value) || node.shape.join("×");
    const grad = leaf && known[i].visited ? known[i].grad : known[i].arrived;
    words[2].textContent = grad === null ? "" : (leaf && known[i].visited ? ".grad " : "g ") + brief(grad);
  });
  panel();
  leaves(known);
  at("slider").value = k;
  at("count").textContent = `${k} / ${steps.length}`;
  at("first").disabled = at("back").disabled = k === 0;
  at("last").disabled = at("next").disabled = k === steps.length;
}

function go(to) {
  k = Math.max(0, Math.min(steps.length, to));
  chosen = null;
  hide();
  if (k === steps.length) stop();
  render();
  reveal(k ? steps[k - 1].node : data.output);
  at("panel").scrollTop = 0;
}
function choose(i) { stop(); chosen = i; hide(); render(); at("panel").scrollTop = 0; }
function stop() { clearInterval(playing); playing = null; at("play").textContent = "▶ play"; }
function play() {
  if (playing) return stop();
  if (k === steps.length) go(0);
  at("play").textContent = "⏸ stop";
  playing = setInterval(() => go(k + 1), 900);
}

function point(event, i) {
  if (event.pointerType === "touch") return;
  const known = state()[i], node = nodes[i], tip = at("tip");
  tip.replaceChildren(element("b", {}, node.title), element("div", {}, "value ", shown(node.value)),
    element("div", {}, node.kind === "leaf" ? ".grad " : "gradient ", node.kind === "leaf"
      ? (known.grad === null ? "None" : shown(known.grad)) : known.arrived === null ? "has not arrived" : shown(known.arrived)));
  tip.hidden = false;
  const box = event.currentTarget.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (box.bottom + tip.offsetHeight + 16 > innerHeight ? Math.max(8, box.top - tip.offsetHeight - 8) : box.bottom + 8) + "px";
}
function hide() { at("tip").hidden = true; }

const keys = { ArrowRight: () => go(k + 1), n: () => go(k + 1), ArrowLeft: () => go(k - 1), p: () => go(k - 1), Home: () => go(0),
  End: () => go(steps.length), " ": play, "+": () => zoom(1), "-": () => zoom(-1), "0": () => zoom(0), Escape: () => go(k) };
document.addEventListener("keydown", event => {
  const own = event.target.matches && (event.target.matches("input") || event.key === " " && event.target.matches("button"));
  if (own || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  event.preventDefault();
  if (event.key !== " ") stop();
  keys[event.key]();
});
at("next").onclick = () => { stop(); go(k + 1); };
at("back").onclick = () => { stop(); go(k - 1); };
at("first").onclick = () => { stop(); go(0); };
at("last").onclick = () => { stop(); go(steps.length); };
at("play").onclick = play;
at("slider").max = steps.length;
at("slider").oninput = () => { stop(); go(Number(at("slider").value)); };
at("zoom").onclick = event => { if (event.target.dataset.zoom) zoom(Number(event.target.dataset.zoom)); };
if (data.note) { at("note").textContent = data.note; at("note").hidden = false; }
draw();
start();
render();
reveal(data.output);
