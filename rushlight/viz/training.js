// The page of a training loop: one recorded step at a time, with the loss of all steps above.
const { records, losses, parameters } = data;
const LAST = records.length - 1, HIGH = 170, LEFT = 84, BOTTOM = 28;
let k = 0, playing = null, cursor = null, dot = null;

function curve() {                       // the loss over the steps; a click goes to the recorded step that is nearest
  at("losses").replaceChildren();
  const finite = losses.filter(([, loss]) => typeof loss === "number");
  if (finite.length < 2) {
    at("losses").append(element("p", { class: "soft" }, "No loss was recorded: name its variable (loss=\"...\"), or call page.record(loss)."));
    return;
  }
  const WIDE = Math.max(260, at("losses").clientWidth);
  const values = finite.map(([, loss]) => loss), low = Math.min(...values), high = Math.max(...values);
  const logarithmic = low > 0 && high / low > 20, height = v => logarithmic ? Math.log(v) : v;
  const x = step => LEFT + (WIDE - LEFT - 14) * step / data.steps;
  const y = v => HIGH - BOTTOM - (HIGH - BOTTOM - 14) * (height(v) - height(low)) / (height(high) - height(low) || 1);
  const text = (string, at, align) => drawn("text", { ...at, "text-anchor": align, class: "value" }, string);
  cursor = drawn("line", { class: "cursor", y1: 8, y2: HIGH - BOTTOM });
  dot = drawn("circle", { class: "dot", r: 5 });
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img",
    "aria-label": `loss from ${written(values[0], 4)} to ${written(values.at(-1), 4)} in ${data.steps} steps`,
    onclick: event => {
      const step = (event.offsetX / picture.clientWidth * WIDE - LEFT) / (WIDE - LEFT - 14) * data.steps;
      go(records.reduce((best, r, i) => Math.abs(r.step - step) < Math.abs(records[best].step - step) ? i : best, 0));
    } },
  drawn("path", { class: "axis", d: `M${LEFT} 8V${HIGH - BOTTOM}H${WIDE - 14}` }),
  drawn("path", { class: "loss", d: finite.map(([step, v], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(v).toFixed(1)}`).join("") }),
  text(written(high, 3), { x: LEFT - 6, y: 18 }, "end"), text(written(low, 3), { x: LEFT - 6, y: HIGH - BOTTOM }, "end"),
  text("0", { x: LEFT, y: HIGH - 8 }, "middle"), text(`step ${data.steps}`, { x: WIDE - 14, y: HIGH - 8 }, "end"),
  text(`loss${logarithmic ? " (logarithmic)" : ""}`, { x: WIDE / 2, y: HIGH - 8 }, "middle"), cursor, dot);
  picture.move = record => {
    cursor.setAttribute("x1", x(record.step));
    cursor.setAttribute("x2", x(record.step));
    const has = typeof record.loss === "number";
    dot.setAttribute("visibility", has ? "visible" : "hidden");
    if (has) { dot.setAttribute("cx", x(record.step)); dot.setAttribute("cy", y(record.loss)); }
  };
  at("losses").append(picture);
}

const topOf = (kind, i) => Math.max(0, ...records.map(record => largest(record[kind][i])));   // through all steps
const tops = parameters.map((_, i) => ({ values: topOf("values", i), grads: topOf("grads", i) }));

function picture(kind, i) {
  const j = records[k][kind][i];
  if (j === null) return element("span", { class: "soft" }, ".grad is None");
  return shown(j, at("same").checked ? tops[i][kind] : largest(j), 3);
}

function parameter({ name }, i) {
  const ratio = records[k].updates && records[k].updates[i];
  return element("div", { class: "parameter", "data-parameter": name },
    element("h2", {}, name),
    element("div", { class: "pair" },
      element("div", {}, element("p", { class: "soft" }, "value"), picture("values", i)),
      element("div", {}, element("p", { class: "soft" }, "gradient"), picture("grads", i))),
    typeof ratio === "number" ? element("p", { class: "facts" }, `update : value = ${written(ratio, 3)}`,
      ratio === 0 ? " (it did not move)" : ratio < 3e-5 ? " (small: large networks have about 0.001)" : ratio > 0.3 ? " (large: large networks have about 0.001)" : "") : null);
}

function render() {
  const record = records[k];
  at("said").textContent = `Step ${record.step} of ${data.steps}` + (typeof record.loss === "number" ? `: loss = ${written(record.loss, 5)}.` : ".")
    + " Values before the update; gradients as the optimizer used them."
    + " update : value is the root mean square of the update, divided by that of the values.";
  at("parameters").replaceChildren(...parameters.map(parameter));
  const drawing = at("losses").querySelector("svg");
  if (drawing) drawing.move(record);
  at("slider").value = k;
  at("slider").setAttribute("aria-valuetext", `step ${record.step}`);
  at("count").textContent = `step ${record.step} / ${data.steps}`;
  at("first").disabled = at("back").disabled = k === 0;
  at("last").disabled = at("next").disabled = k === LAST;
}
function go(to) {
  k = Math.max(0, Math.min(LAST, to));
  if (k === LAST) stop();
  render();
}
function stop() { clearInterval(playing); playing = null; at("play").textContent = "▶ play"; }
function play() {
  if (playing) return stop();
  if (k === LAST) go(0);
  at("play").textContent = "⏸ stop";
  playing = setInterval(() => go(k + 1), 400);
}

const keys = { ArrowRight: () => go(k + 1), n: () => go(k + 1), ArrowLeft: () => go(k - 1), p: () => go(k - 1), Home: () => go(0),
  End: () => go(LAST), " ": play };
document.addEventListener("keydown", event => {
  const own = event.target.matches && (event.target.matches("input") || event.key === " " && event.target.matches("button"));
  if (own || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  event.preventDefault();
  if (event.key !== " ") stop();
  keys[event.key]();
});
const pressed = { next: () => go(k + 1), back: () => go(k - 1), first: () => go(0), last: () => go(LAST) };
for (const [id, act] of Object.entries(pressed)) at(id).onclick = () => { stop(); act(); };
at("play").onclick = play;
at("slider").max = LAST;
at("slider").oninput = () => { stop(); go(Number(at("slider").value)); };
at("same").onchange = render;
const notes = [data.every > 1 ? `Every ${data.every}th of ${data.steps} steps is on this page.` : "",
  data.leftOut ? `${data.leftOut} more parameters are left out.` : ""].filter(text => text);
if (notes.length) { at("note").textContent = notes.join(" "); at("note").hidden = false; }
curve();
render();
addEventListener("resize", () => { curve(); render(); });
