// The step page: first the forward pass in the order of the program, then backward as rushlight's engine went through it.
// Time k: 0 is the start; 1 to F the forward steps; F + 1 the gradient of the output; then the B steps of backward.
const { nodes, edges, steps, groups } = data;
const F = data.forward.length, LAST = F + 1 + steps.length;
const LETTER = 7.85, MAX_BOX_WIDTH = 330;     // of text of 13 px
const SPACINGS = [{ box: 64, row: 62, margin: 18 }, { box: 64, row: 40, margin: 18 }, { box: 43, row: 22, margin: 8 }];   // px; the last has value and gradient on one line
const LETTERS = { desktop: 10, phone: 7.5 };  // least px of letters after "fit", before modules close; a phone has small pixels
const OVERVIEW = 0.4;            // a graph that no closed module makes smaller is shown whole down to this scale
const MAX_TRIED_BOXES = 150;     // of a larger graph only one layout is made
const MAX_LEAVES = 100;          // in the list of leaves
const MAX_OPEN_BOXES = 40;       // a larger graph opens with its modules closed
const paths = Object.keys(groups), depthOf = path => path.split(".").length;
let k = 0, chosen = null, playing = null, scale = 1, sameScale = false, zoomed = false;
let closed = new Set(), view = null;

// -- which boxes there are now ------------------------------------------------------------------------------------------

function closedGroup(i, among) {         // the outermost closed module that holds node i; null if all are open
  const parts = nodes[i].home ? nodes[i].home.split(".") : [];
  for (let n = 1; n <= parts.length; n++) {
    const path = parts.slice(0, n).join(".");
    if (among.has(path)) return path;
  }
  return null;
}

function contracted(among) {             // boxes: a node, or a closed module with its nodes; links between them
  const boxes = [], ofNode = [], ofGroup = new Map();
  nodes.forEach((node, i) => {           // newest first: an op comes after its result, in whose box it is drawn
    const path = i === data.output ? null : closedGroup(i, among);
    if (node.result !== undefined && (path === null || node.result === data.output)) boxes[ofNode[i] = ofNode[node.result]].members.push(i);
    else if (path === null) ofNode[i] = boxes.push({ path: null, node: i, members: [i] }) - 1;
    else {
      if (!ofGroup.has(path)) ofGroup.set(path, boxes.push({ path, node: null, members: [] }) - 1);
      boxes[ofNode[i] = ofGroup.get(path)].members.push(i);
    }
  });
  const links = new Map();
  edges.forEach((edge, e) => {
    const from = ofNode[edge.from], to = ofNode[edge.to];
    if (from === to) return;
    const key = boxes[from].path === null && boxes[to].path === null ? `e${e}` : `${from}>${to}`;
    if (!links.has(key)) links.set(key, { from, to, edges: [] });
    links.get(key).edges.push(e);
  });
  return { boxes, ofNode, links: [...links.values()] };
}

function acyclic(wanted) {               // a module that is left and entered again stays open: one box cannot come before itself
  let among = new Set(wanted);
  for (;;) {
    const made = contracted(among), inputs = made.boxes.map(() => []);
    for (const link of made.links) inputs[link.from].push(link.to);
    const free = new Set(topological(inputs));
    const tangled = new Set(made.boxes.filter((box, i) => !free.has(i) && box.path !== null).map(box => box.path));
    if (!tangled.size) return made;
    among = new Set([...among].filter(path => !tangled.has(path)));
  }
}

const closedFrom = depth => new Set(paths.filter(path => depthOf(path) >= depth));
const deepest = Math.max(0, ...paths.map(depthOf));

function firstClosed() {                 // all open if they can be read at a glance, else as much as can
  if (nodes.length <= MAX_OPEN_BOXES) return new Set();
  for (let depth = deepest; depth > 1; depth--)
    if (acyclic(closedFrom(depth)).boxes.length <= MAX_OPEN_BOXES) return closedFrom(depth);
  return closedFrom(1);
}

function resultOf(box) {                 // the node whose result is the box's result: the last one that others use
  if (box.node !== null) return box.node;
  const inside = new Set(box.members);
  const used = edges.filter(edge => inside.has(edge.to) && !inside.has(edge.from) && !edge.constant).map(edge => edge.to);
  return Math.min(...(used.length ? used : box.members));       // nodes are ordered newest first
}

// -- what is known at time k --------------------------------------------------------------------------------------------

const orderOf = new Map(data.forward.map((i, n) => [i, n + 1]));
nodes.forEach((node, i) => {             // one output of an op with several comes with its op
  if (node.kind === "leaf" || node.kind === "constant") orderOf.set(i, 0);
  else if (!orderOf.has(i)) orderOf.set(i, Math.max(0, ...edges.filter(e => e.from === i).map(e => orderOf.get(e.to) || 0)));
});
const backward = () => k > F;
// A single result of an op with several is drawn in the box of its op: its own step is passed over and not counted.
const merged = new Set(nodes.flatMap(node => node.result === undefined ? [] : [node.result]));
const hidden = time => time > F + 1 && time < LAST && merged.has(steps[time - F - 2].node);
const countTo = time => time - [...Array(time + 1).keys()].filter(hidden).length;      // of the steps that are shown
const shownSteps = () => countTo(LAST) - F - 1;
const stepNow = () => k > F + 1 ? steps[k - F - 2] : null;
const nodeAt = time => time < 1 ? null : time <= F ? data.forward[time - 1] : time === F + 1 ? data.output : steps[time - F - 2].node;

function state() {                       // of each node: whether its value is computed, its gradient, its `.grad`
  const known = nodes.map((node, i) => ({ computed: orderOf.get(i) <= k, arrived: null, visited: false, grad: node.grad }));
  if (backward()) known[data.output].arrived = data.seed;
  for (const step of steps.slice(0, Math.max(0, k - F - 1))) {
    const node = known[step.node];
    node.visited = true;
    if (step.incoming !== null) node.arrived = step.incoming;
    if (step.grad) node.grad = step.grad[1];
    for (const a of step.arrivals) known[edges[a.edge].to].arrived = a.total;
  }
  return known;
}

// -- the picture --------------------------------------------------------------------------------------------------------

function boxText(box) {                  // [name, kind of the box]
  if (box.path === null) return [nodes[box.node].label, nodes[box.node].kind];
  const { name, kind, what } = groups[box.path];     // the statement of a group stands in the panel: a box has no room
  return [`▸ ${name}${kind && !what ? ": " + kind : ""}`, "group"];
}

function widthOf(box, dense) {           // for its name, and for a line with numbers
  const node = nodes[resultOf(box)], count = node.shape.reduce((a, b) => a * b, 1);
  const line = count === 1 ? 8 : count <= 3 ? 9 * count + 1 : node.shape.join("×").length + 16;
  return Math.min(MAX_BOX_WIDTH, Math.max(boxText(box)[0].length, dense ? 2 * line + 2 : line + 6) * LETTER + 20);
}

function build() {                       // lay out and draw the boxes that are there now
  view = acyclic(closed);
  const inputs = view.boxes.map(() => []), order = [];
  view.links.forEach((link, n) => inputs[link.from].push([link.to, n]));
  inputs.forEach(list => list.forEach(([, n]) => order.push(n)));
  const below = inputs.map(list => list.map(([to]) => to));
  const placed = spacing => layered(view.boxes.map(box => [widthOf(box, spacing.box < 64), spacing.box]), below, spacing);
  const spacings = view.boxes.length <= MAX_TRIED_BOXES ? SPACINGS : SPACINGS.slice(0, 1);
  const tried = spacings.map(spacing => ({ spacing, laid: placed(spacing) }));
  const seen = ({ laid }) => scaleOf(laid.width, laid.height);
  const { spacing, laid } = tried.find(t => seen(t) >= 1) || tried.reduce((best, t) => seen(t) > seen(best) ? t : best);
  Object.assign(view, { points: laid.points, width: laid.width, height: laid.height, dense: spacing.box < 64 });
  edgeStops(laid.points, laid.routes).forEach((stops, n) => { view.links[order[n]].stops = stops; });
  view.linkOf = new Map(view.links.flatMap(link => link.edges.map(e => [e, link])));
  draw();
}

function draw() {
  const picture = at("picture");
  picture.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
  picture.replaceChildren(drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8,
    markerHeight: 8, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" }, drawn("path", { d: "M0 .8 L8 4 L0 7.2 z" }))));
  for (const link of view.links) {
    link.line = drawn("path", { class: "edge", d: curved(link.stops) });
    picture.append(link.line);
  }
  view.boxes.forEach((box, b) => picture.append(drawnBox(box, b)));
  view.pills = drawn("g", {});
  picture.append(view.pills);
}

function drawnBox(box, b) {
  const { x, y, width, height } = view.points[b], [name, kind] = boxText(box);
  const line = (word, row) => drawn("text", { class: word, x, y: y - height / 2 + (view.dense ? 17 : 20) + row * 17, "text-anchor": "middle" });
  const title = line("name", 0);
  let numbersOf;
  if (view.dense) {                      // value and gradient side by side
    box.value = drawn("tspan", { class: "value" });
    box.grad = drawn("tspan", { class: "grad" });
    numbersOf = [filled(line("", 1), {}, [box.value, box.grad])];
  } else numbersOf = [box.value = line("value", 1), box.grad = line("grad", 2)];
  title.textContent = name.length * LETTER > width - 10 ? name.slice(0, Math.floor((width - 24) / LETTER)) + "…" : name;
  box.shape = drawn("g", { class: `node ${kind}`, tabindex: 0, role: "button", "data-box": b,
    "data-node": box.node, "data-group": box.path, onclick: () => press(b), onpointerenter: event => point(event, b),
    onpointerleave: hide, onfocus: hide, onkeydown: event => boxKey(event, b) },
  drawn("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: kind === "leaf" ? 16 : 7 }), title, ...numbersOf);
  return box.shape;
}

function boxKey(event, b) {
  if (event.key === "Enter") { press(b); event.stopPropagation(); event.preventDefault(); }
}
function press(b) {                      // a closed module opens; of another box the details are shown
  const box = view.boxes[b];
  if (box.path !== null) open(box.path, true);
  else choose(box.node);
}

function open(path, is) {
  stop();
  hide();
  const inside = [...Array(nodes.length).keys()].find(i => (nodes[i].home + ".").startsWith(path + "."));
  if (is) closed.delete(path); else closed.add(path);
  build();
  size();
  render();
  const b = is ? view.ofNode[inside] : view.ofNode.find((box, i) => nodes[i].home && (nodes[i].home + ".").startsWith(path + "."));
  view.boxes[b].shape.focus({ preventScroll: true });
  reveal(b);
}
function openAll(is) {
  closed = is ? new Set() : closedFrom(1);
  build();
  size();
  render();
  follow();
}

function pills(arrivals) {               // the numbers on their way, each on its edge where nothing else is written
  view.pills.replaceChildren();
  const taken = view.points.slice(0, view.boxes.length).map(p => ({ x: p.x - p.width / 2, y: p.y - p.height / 2, width: p.width, height: p.height }));
  const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  for (const a of arrivals) {
    const link = view.linkOf.get(a.edge), text = brief(a.gives, true).replace(/^\S+ {2}/, "");
    if (!link || !text) continue;
    const width = text.length * LETTER + 12, height = 20, long = link.line.getTotalLength();
    const spot = part => {
      const { x, y } = link.line.getPointAtLength(long * part);
      return { x: x - width / 2, y: y - height / 2, width, height };
    };
    const fits = place => !taken.some(other => meet(other, place));
    const free = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82].map(spot).find(fits)
      || [1, -1, 2, -2, 3, -3].map(n => ({ ...spot(0.5), x: spot(0.5).x + n * width / 3 })).find(fits) || spot(0.5);
    taken.push(free);
    view.pills.append(drawn("g", { class: "sent" }, drawn("rect", { ...free, rx: 9 }),
      drawn("text", { x: free.x + width / 2, y: free.y + 14.5, "text-anchor": "middle" }, text)));
  }
}

// -- size and place of the picture --------------------------------------------------------------------------------------

const scaleOf = (width, height) => Math.min(at("room").clientWidth / width, at("room").clientHeight / height, 1.3);
const wholeScale = () => scaleOf(view.width, view.height);
const minScale = () => (innerWidth <= 760 ? LETTERS.phone : LETTERS.desktop) / 13;

function zoom(by) {
  zoomed = by !== 0;
  if (by) scale = Math.min(2.5, Math.max(Math.min(wholeScale(), 0.25), scale * 1.25 ** by));
  else fit();
  size();
  follow();
}
function fit() {                         // the whole graph; where its letters would be too small, modules close instead
  build();
  render();
  for (let depth = deepest; wholeScale() < minScale() && depth > 0; depth--) {
    if ([...closedFrom(depth)].every(path => closed.has(path))) continue;
    closed = new Set([...closed, ...closedFrom(depth)]);
    build();
    render();
  }
  readable();
}
function readable() {                    // the whole graph; of one that would be tiny, as much as legible letters allow
  const whole = wholeScale();
  scale = whole >= OVERVIEW ? whole : Math.max(0.75 * minScale(), Math.min(1, at("room").clientWidth / view.width));
}
function size() {
  at("picture").setAttribute("width", view.width * scale);
  at("picture").setAttribute("height", view.height * scale);
}
function reveal(b) {                     // the box in the middle
  const room = at("room"), p = view.points[b];
  const left = Math.max(0, (room.clientWidth - view.width * scale) / 2), above = Math.max(0, (room.clientHeight - view.height * scale) / 2);
  const to = [p.x * scale + left - room.clientWidth / 2, p.y * scale + above - room.clientHeight / 2];
  const far = Math.hypot(to[0] - room.scrollLeft, to[1] - room.scrollTop) > 1.5 * room.clientHeight;
  room.scrollTo({ left: to[0], top: to[1], behavior: far ? "instant" : "auto" });    // "auto": smooth, as the style says
}
const follow = () => reveal(view.ofNode[nodeAt(k) ?? data.output]);

// -- the panel ----------------------------------------------------------------------------------------------------------

const whatOf = path => groups[path].what || "module";    // a graph without modules has groups of consecutive steps
const link = i => element("button", { type: "button", class: "plain", onclick: () => choose(i) }, nodes[i].name);
const heading = text => element("h3", {}, text);
const row = (name, ...what) => element("div", { class: "row" }, element("span", { class: "who" }, name), ...what);

function modulesOf(node) {               // the modules around a node, each to close or open
  if (!node.home) return null;
  const parts = node.home.split("."), around = parts.map((_, n) => parts.slice(0, n + 1).join("."));
  return element("p", { class: "soft modules" }, "in ", ...around.flatMap((path, n) => [n ? " › " : "",
    element("button", { type: "button", class: "plain", title: `${closed.has(path) ? "open" : "close"} this ${whatOf(path)}`,
      onclick: () => open(path, closed.has(path)) }, `${closed.has(path) ? "▸" : "▾"} ${groups[path].name}${groups[path].kind ? ` (${groups[path].kind})` : ""}`)]));
}

function source(node) {
  if (!node.source) return null;
  const { file, line, from, text } = data.sources[node.source], digits = String(from + text.length - 1).length;
  return element("div", { class: "source", tabindex: 0, role: "region", "aria-label": "your program" },
    element("div", { class: "place" }, `${file}:${line}`),
    ...text.map((t, i) => element("pre", { class: from + i === line ? "here" : null }, `${String(from + i).padStart(digits)}  ${t}`)));
}

function pictures(list) {                // rows of [name, array]: all with one colour scale where that was chosen
  const tops = list.map(([, i]) => largest(i)), top = Math.max(0, ...tops), several = tops.filter(t => t > 0).length > 1;
  return element("div", {}, several ? element("label", { class: "facts" }, element("input", { type: "checkbox", checked: sameScale ? "" : null,
    onchange: event => { sameScale = event.target.checked; panel(); } }), " one colour scale for these") : null,
  ...list.map(([name, i]) => row(name, i === null ? shown(i) : shown(i, several && sameScale ? top : largest(i)))));
}

function card(i) {                       // what is known of a node, whatever the step
  const node = nodes[i], known = state()[i];
  const grad = node.kind === "leaf" ? known.grad === null ? "None" : shown(known.grad)
    : node.kind === "constant" ? element("span", { class: "soft" }, "none: it needs no gradient")
      : known.arrived === null ? element("span", { class: "soft" }, "nothing has arrived") : shown(known.arrived);
  return element("div", {}, element("h2", {}, node.forward ? `${node.name} = ${node.forward}` : node.label), element("p", { class: "soft" }, node.title), modulesOf(node),
    node.said && known.computed ? element("p", { class: "why" }, node.said) : null, source(node),
    row("value", known.computed ? shown(node.value) : element("span", { class: "soft" }, "not computed yet")),
    ...(known.computed ? node.inputs : []).map(([name, n]) => row(name, shown(n))),
    row(node.kind === "leaf" ? ".grad" : "gradient", grad));
}

function sent(a) {
  const edge = edges[a.edge], rule = nodes[edge.from].rules[edge.slot];
  const given = numbers[a.gives], total = numbers[a.total];
  const fits = !given || given.parts || !total.shape || given.shape.join() === total.shape.join();
  return element("div", { class: "send" },
    element("div", {}, "to ", link(edge.to), a.place ? `, the ${a.place} ${nodes[edge.to].name}` : "", rule && rule[1] ? element("span", { class: "formula" }, rule[1]) : null),
    a.gives === null ? null : shown(a.gives),
    fits ? null : element("div", {}, element("span", { class: "word" }, "summed "), "to the shape before broadcasting"),
    a.first && fits ? null : element("div", { class: "total" },
      a.first ? null : element("span", { class: "word" }, "added: "), a.first ? null : "the sum there is now ", shown(a.total)));
}

const KEYS = [
  ["→  ←", "next step, previous step (n and p, too)"], ["space", "play, stop"], ["Home  End", "first step, last step"],
  ["b", "to the first step of backward"], ["+  −  0", "larger, smaller, fit"], ["Tab, Enter", "next box; its details, or open a closed module"],
  ["c  o", "close the module of this step; open all modules"], ["?", "this help"]];
const SIGNS = [
  [element("i", { class: "output" }), "the output, where backward starts"], [element("i", { class: "now" }), "the step that is shown"],
  [element("i", { class: "leaf" }), "a parameter or another leaf: gradients are added in its .grad"],
  [element("i", { class: "constant" }), "a constant: it gets no gradient"], [element("i", { class: "group" }), "a closed module, or a closed group of steps: click to open"],
  ["g", "the gradient that has arrived at a box: d output / d box"], ["mean", "mean of the values (tensors with more than 3 elements)"], ["|max|", "the largest absolute value of a gradient with more than 3 numbers"],
  ["x₁, x₂", "the first and the second value that the program gives to x; x₀ is a constant that x holds before"],
  ["swipe, pinch", "on a phone: swipe the text for the next step, pinch the graph to zoom"]];
const legend = rows => element("dl", {}, ...rows.flatMap(([sign, what]) => [element("dt", {}, typeof sign === "string" ? sign : sign.cloneNode()), element("dd", {}, what)]));

function phase(name, n, of) {
  return element("p", { class: `phase ${name.toLowerCase()}` }, element("b", {}, name), ` step ${n} of ${of}`);
}

function panel() {
  at("step").replaceChildren(...(chosen !== null ? [element("p", { class: "soft" }, "Press next to continue."), card(chosen)]
    : k === 0 ? startPanel() : k <= F ? forwardPanel() : k === F + 1 ? turnPanel() : backwardPanel()).filter(part => part !== null));
}

function startPanel() {
  return [element("h2", {}, "Start"),
    element("p", { class: "why" }, `The program computes ${nodes[data.output].name} in ${F} step${F === 1 ? "" : "s"}. Then backward goes the same way back`
      + ` and gives each leaf its gradient: d ${nodes[data.output].name} / d leaf.`),
    element("p", { class: "soft" }, "Press next or → to begin."), heading("How to read it"), legend(SIGNS), heading("Keys"), legend(KEYS)];
}

function together(make) {                // the steps inside one closed module, as a list of their sentences
  const b = view.ofNode[nodeAt(k)], box = view.boxes[b];
  if (box.path === null) return null;
  const first = k <= F ? 1 : F + 2, said = [];   // k is the last of them
  let count = 0;
  for (let time = k; time === k || time >= first && sameBox(time, time + 1); time--) {
    said.unshift(...make(time).filter(text => text));
    if (!hidden(time)) count++;
  }
  const { name, kind } = groups[box.path], left = said.length - 12;
  return [element("h2", {}, `${name}${kind ? ": " + kind : ""}`),
    element("p", {}, `${count === 1 ? "One step" : `${count} steps`} inside a closed ${whatOf(box.path)}. `, element("button", { type: "button", onclick: () => open(box.path, true) }, `open ${name}`)),
    element("ol", { class: "why" }, ...said.slice(-12).map(text => element("li", {}, text))),
    left > 0 ? element("p", { class: "soft" }, `${left} earlier sentences are left out.`) : null];
}

function forwardPanel() {
  const node = nodes[nodeAt(k)], several = together(time => [nodes[nodeAt(time)].said]);
  const what = several || [element("h2", {}, node.forward ? `${node.name} = ${node.forward}` : node.label), element("p", { class: "why" }, node.said), modulesOf(node)];
  return [phase("Forward", k, F), ...what, source(node), pictures([...node.inputs, [node.name, node.value]])];
}

function turnPanel() {
  const name = nodes[data.output].name;
  return [phase("Backward", 0, shownSteps()), element("h2", {}, `d${name}/d${name}`),
    element("p", { class: "why" }, data.seed === null ? "Backward starts at the output."
      : `Backward starts at ${name} with the gradient of ${name} with respect to itself. Each step multiplies what has arrived by one derivative (the chain rule).`),
    data.seed === null ? null : shown(data.seed)];
}

function backwardPanel() {
  const step = stepNow(), node = nodes[step.node];
  const several = together(time => {
    const inside = steps[time - F - 2];
    return [...inside.arrivals.map(a => a.said), inside.grad ? gradSentence(nodes[inside.node], inside) : ""];
  });
  const what = several || [element("h2", {}, node.forward ? `${node.name} = ${node.forward}` : node.label), ...step.arrivals.map(a => element("p", { class: "why" }, a.said)),
    step.grad ? element("p", { class: "why" }, gradSentence(node, step)) : null, modulesOf(node)];
  if (several) return [phase("Backward", countTo(k) - F - 1, shownSteps()), ...what, source(node),
    element("p", { class: "soft" }, "g is the gradient that arrived at each of these steps. Open the " + whatOf(view.boxes[view.ofNode[step.node]].path) + " to see the numbers.")];
  return [phase("Backward", countTo(k) - F - 1, shownSteps()), ...what, source(node),
    step.incoming === null ? null : heading("g, the gradient that arrived"), step.incoming === null ? null : shown(step.incoming),
    step.arrivals.length ? heading("Gradients sent on") : null, ...step.arrivals.map(sent),
    node.inputs.length && step.arrivals.length && step.incoming !== null ? heading("With these values") : null,
    node.inputs.length && step.arrivals.length && step.incoming !== null ? pictures([...node.inputs, [node.name, node.value]]) : null,
    ...(step.grad ? accumulated(node.name, step.grad) : [])];
}

function gradSentence(node, step) {
  return step.grad[0] === null ? `${node.name} is a leaf: its .grad was None and is now the gradient that arrived.`
    : `${node.name} is a leaf: the gradient that arrived is added to its .grad, which was not cleared before.`;
}
function accumulated(name, [before, after]) {
  return [heading(`Accumulated into ${name}.grad`),
    before === null ? element("p", {}, ".grad was None; now it is") : element("p", {}, ".grad was ", shown(before), " and is now"), shown(after)];
}

function underway({ arrived, visited }) {   // a gradient that has arrived at a leaf, before the leaf's own step adds it to .grad
  return backward() && arrived !== null && !visited
    ? [element("span", { class: "soft" }, "g, which has arrived"), element("span", { class: "word" }, brief(arrived, true) || "an array")] : [];
}

function leaves(known) {
  const now = nodeAt(k), all = nodes.flatMap((node, i) => node.kind === "leaf" ? [i] : []);
  at("leaves").replaceChildren(...all.slice(0, MAX_LEAVES).map(i => element("div", { class: i === now ? "row now" : "row", "data-leaf": nodes[i].raw }, element("span", { class: "who" }, link(i)),
      ...underway(known[i]), element("span", { class: "soft" }, ".grad"),
      known[i].grad === null ? element("span", { class: "soft" }, "None") : shown(known[i].grad))),
  all.length > MAX_LEAVES ? element("p", { class: "soft" }, `${all.length - MAX_LEAVES} more leaves are left out here: click their boxes.`) : "");
}

// -- going --------------------------------------------------------------------------------------------------------------

function render() {
  const known = state(), step = stepNow(), now = nodeAt(k);
  const inForward = k > 0 && k <= F;
  const active = new Set(inForward ? edges.flatMap((edge, e) => edge.from === now ? [e] : []) : step ? step.arrivals.map(a => a.edge) : []);
  const went = new Set(backward() ? steps.slice(0, k - F - 1).flatMap(s => s.arrivals.map(a => a.edge)) : []);
  for (const { line, edges: inside } of view.links) {
    const up = !backward();
    line.setAttribute("class", "edge" + (inside.some(e => active.has(e)) ? " now" : inside.some(e => went.has(e)) ? " went"
      : inside.every(e => edges[e].constant) ? " constant" : ""));
    line.setAttribute("marker-start", up ? "url(#arrow)" : "");
    line.setAttribute("marker-end", up || inside.every(e => edges[e].constant) ? "" : "url(#arrow)");
    if (up) line.setAttribute("data-up", ""); else line.removeAttribute("data-up");
  }
  view.boxes.forEach((box, b) => {
    const i = resultOf(box), node = nodes[i], { arrived, computed, grad, visited } = known[i];
    const own = now !== null && view.ofNode[now] === b, leaf = node.kind === "leaf" && box.path === null;
    box.shape.setAttribute("class", `node ${boxText(box)[1]}` + (own ? ` now ${backward() ? "back" : "fore"}` : backward() && node.kind !== "constant" && box.members.every(m => known[m].visited || nodes[m].kind === "constant") ? " went" : "")
      + (box.members.includes(chosen) ? " chosen" : "") + (computed ? "" : " waiting"));
    box.value.textContent = computed ? ` ${brief(node.value) || node.shape.join("×")}` : "";   // the space parts the words for screen readers
    const shownGrad = leaf && (visited || arrived === null) ? grad : arrived;
    const said = leaf && shownGrad === grad && !view.dense ? " .grad " : " g ";
    box.grad.textContent = shownGrad === null ? "" : said + brief(shownGrad, true);
  });
  pills(step ? step.arrivals : []);
  panel();
  leaves(known);
  at("slider").value = k;
  at("slider").setAttribute("aria-valuetext", k === 0 ? "start" : k <= F ? `forward ${k} of ${F}` : `backward ${countTo(k) - F - 1} of ${shownSteps()}`);
  at("count").textContent = `${countTo(k)} / ${countTo(LAST)}`;
  at("phase").textContent = k === 0 ? "start" : backward() ? "backward" : "forward";
  at("first").disabled = at("back").disabled = k === 0;
  at("last").disabled = at("next").disabled = k === LAST;
}

function go(to) {
  k = Math.max(0, Math.min(LAST, to));
  while (hidden(k)) k++;
  chosen = null;
  hide();
  if (k === LAST) stop();
  render();
  follow();
  at("panel").scrollTop = 0;
}
const sameBox = (a, b) => a > 0 && b > 0 && a !== F + 1 && b !== F + 1 && (a <= F) === (b <= F) && view.ofNode[nodeAt(a)] === view.ofNode[nodeAt(b)];
function forth() {                       // one step; of a closed module all steps at once
  let to = k + 1;
  while (to < LAST && sameBox(to, to + 1)) to++;
  go(to);
}
function backTo() {
  let to = k;
  while (to > 0 && sameBox(to, to - 1)) to--;
  go(to - 1);
}
function choose(i) { stop(); chosen = i; hide(); render(); at("panel").scrollTop = 0; }
function stop() { clearInterval(playing); playing = null; at("play").textContent = "▶ play"; }
function play() {
  if (playing) return stop();
  if (k === LAST) go(0);
  at("play").textContent = "⏸ stop";
  playing = setInterval(forth, 900);
}

function point(event, b) {
  if (event.pointerType === "touch") return;
  const box = view.boxes[b], i = resultOf(box), known = state()[i], node = nodes[i], tip = at("tip");
  const grad = node.kind === "leaf" ? known.grad : known.arrived;
  tip.replaceChildren(element("b", {}, box.path === null ? node.title : `${groups[box.path].name}${groups[box.path].what && groups[box.path].kind ? `, ${groups[box.path].kind}` : ""}: ${box.members.length} boxes; click to open`),
    element("div", {}, "value ", known.computed ? shown(node.value) : "not computed yet"),
    backward() && node.kind !== "constant" ? element("div", {}, node.kind === "leaf" ? ".grad " : "gradient ", grad === null ? "has not arrived" : shown(grad)) : "");
  tip.hidden = false;
  const place = event.currentTarget.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (place.bottom + tip.offsetHeight + 16 > innerHeight ? Math.max(8, place.top - tip.offsetHeight - 8) : place.bottom + 8) + "px";
}
function hide() { at("tip").hidden = true; }

function closeModule() {                 // the innermost open module of the step that is shown
  const i = chosen ?? nodeAt(k), parts = i === null || !nodes[i].home ? [] : nodes[i].home.split(".");
  for (let n = parts.length; n; n--) {
    const path = parts.slice(0, n).join(".");
    if (!closed.has(path)) return open(path, false);
  }
}
function help() {
  stop();
  at("helptext").replaceChildren(element("h2", {}, "Help"), heading("Keys"), legend(KEYS), heading("Signs"), legend(SIGNS));
  at("help").showModal();
  at("help").scrollTop = 0;                // showModal scrolls to the button, which has the focus
}

const keys = { ArrowRight: forth, n: forth, ArrowLeft: backTo, p: backTo, Home: () => go(0), End: () => go(LAST), b: () => go(F + 1), " ": play,
  "+": () => zoom(1), "-": () => zoom(-1), "0": () => zoom(0), c: closeModule, o: () => openAll(true), "?": help, Escape: () => go(k) };
document.addEventListener("keydown", event => {
  const own = event.target.matches && (event.target.matches("input") || event.key === " " && event.target.matches("button"));
  if (own || at("help").open || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  event.preventDefault();
  if (event.key !== " ") stop();
  keys[event.key]();
});
const pressed = { next: forth, back: backTo, first: () => go(0), last: () => go(LAST) };
for (const [id, act] of Object.entries(pressed)) at(id).onclick = () => { stop(); act(); };
at("play").onclick = play;
at("ask").onclick = help;
at("openall").onclick = () => openAll(true);
at("closeall").onclick = () => openAll(false);
at("slider").max = LAST;
at("slider").oninput = () => { stop(); go(Number(at("slider").value)); };
at("zoom").onclick = event => { if (event.target.dataset.zoom) zoom(Number(event.target.dataset.zoom)); };

// -- touch: swipe the panel, pinch the graph ----------------------------------------------------------------------------

const fingers = new Map();
let pinched = null, swiped = null;
const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
at("room").addEventListener("pointerdown", event => {
  if (event.pointerType !== "touch") return;
  fingers.set(event.pointerId, event);
  if (fingers.size === 2) pinched = { from: spread(), scale };
});
at("room").addEventListener("pointermove", event => {
  if (!fingers.has(event.pointerId)) return;
  fingers.set(event.pointerId, event);
  if (!pinched || fingers.size !== 2) return;
  zoomed = true;
  scale = Math.min(2.5, Math.max(0.25, pinched.scale * spread() / pinched.from));
  size();
});
for (const kind of ["pointerup", "pointercancel"])
  at("room").addEventListener(kind, event => { fingers.delete(event.pointerId); if (fingers.size < 2) pinched = null; });
at("panel").addEventListener("touchstart", event => {
  swiped = event.touches.length === 1 && !event.target.closest(".source, .numbers, input") ? event.touches[0] : null;
}, { passive: true });
at("panel").addEventListener("touchend", event => {
  if (!swiped) return;
  const dx = event.changedTouches[0].clientX - swiped.clientX, dy = event.changedTouches[0].clientY - swiped.clientY;
  swiped = null;
  if (Math.abs(dx) < 50 || Math.abs(dx) < 2 * Math.abs(dy)) return;
  stop();
  if (dx < 0) forth(); else backTo();
}, { passive: true });

// -- start --------------------------------------------------------------------------------------------------------------

at("timeline").style.setProperty("--turn", `${(100 * (F + 0.5) / LAST).toFixed(2)}%`);
if (data.note) { at("note").textContent = data.note; at("note").hidden = false; }
at("modules").hidden = !paths.length;
closed = firstClosed();
fit();
size();
follow();
addEventListener("resize", () => { if (!zoomed) { readable(); size(); } follow(); });
