// The live page: asks the program for its news about three times a second, and draws them.
const EVERY = 350, MAX_RECORDS = 240, MAX_LOSSES = 4000, BINS = 32, GIVE_UP = 6;
const CURVES = ["", " second", " third"];
let meta = { version: -1, layers: [], parameters: [] }, losses = [], records = [], state = {}, failures = 0;
let layer = 0, parameter = null, rows = [], rates = [];

// -- from the program

async function ask() {
  const query = `since=${records.length ? records.at(-1).number : 0}&losses=${losses.length ? losses.at(-1)[0] : 0}&version=${meta.version}`;
  try {
    const answer = await transport("state?" + query);
    failures = 0;
    take(answer);
  } catch (error) {
    failures += 1;
    if (failures === 2) status(state.status === "ended" ? "ended" : "no answer");
  }
  if (failures < GIVE_UP) setTimeout(ask, failures ? 1000 : document.hidden ? 3 * EVERY : EVERY);
  else { status("ended"); note("The program has ended. The page keeps what it has received."); }
}

async function transport(path, method = "GET") {   // a notebook's widget puts its own in place
  if (window.liveTransport) return window.liveTransport(path, method);
  const answer = await fetch(path, { method, cache: "no-store" });
  if (!answer.ok) throw Error(await answer.text());
  return answer.json();
}

function take(news) {
  state = news;
  if (news.meta) { meta = news.meta; layers(); }
  losses.push(...news.losses);
  if (losses.length > MAX_LOSSES) losses = losses.filter((_, i) => i > losses.length / 2 || i % 2 === 0);
  records.push(...news.records);
  if (records.length > MAX_RECORDS) records = records.filter((_, i) => i > records.length / 2 || i % 2 === 0);
  rates.push([news.seconds, news.count]);
  if (rates.length > 8) rates.shift();
  status(news.status);
  render();
}

function status(text) {
  document.body.dataset.status = text;
  if (at("status").textContent !== text) at("status").textContent = text;
  const over = text === "ended" || text === "no answer";
  at("toggle").textContent = text.startsWith("paus") ? "▶ resume" : "❚❚ pause";
  at("toggle").disabled = at("one").disabled = over;
}

function note(text) {
  if (at("note").textContent !== text) at("note").textContent = text;
  at("note").hidden = !text;
}

// -- drawing

function render() {
  const [[s0, c0], [s1, c1]] = [rates[0], rates.at(-1)];
  const speed = s1 > s0 && c1 > c0 && state.status === "running" ? ` · ${written((c1 - c0) / (s1 - s0), 3)} steps/s` : "";
  at("facts").textContent = `step ${state.count}${speed}`;
  curve();
  rows.forEach(fill);
  maps();
  if (records.length) at("layers-step").textContent = `at step ${records.at(-1).step}; the line in the last column: 0.001`;
  guess(state.predictions);
  slow(state.ops || []);
}

function ticks(low, high, logarithmic) {
  const found = [];
  if (logarithmic) {
    const decades = Math.log10(high / low), factors = decades > 3 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
      for (const f of factors) if (f * 10 ** e >= low * 0.999 && f * 10 ** e <= high * 1.001) found.push(f * 10 ** e);
    return found.length > 6 ? found.filter((_, i) => i % 2 === 0) : found;
  }
  const raw = (high - low) / 4 || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(f => f * size).find(s => s >= raw);
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}

function curve() {
  const finite = losses.filter(([, loss]) => typeof loss === "number"), last = losses.at(-1);
  at("loss-now").textContent = last ? `${written(last[1], 4)} at step ${last[0]}` : "";
  const bad = losses.find(([, loss]) => typeof loss !== "number");
  if (bad) note(`The loss is ${bad[1]} at step ${bad[0]}.`);
  if (finite.length < 2) {
    at("loss").replaceChildren(element("p", { class: "soft" }, "The curve appears after two steps that call backward on a loss."));
    return;
  }
  const WIDE = Math.max(260, at("loss").clientWidth), HIGH = 176, LEFT = 62, BOTTOM = 24;
  const values = finite.map(([, loss]) => loss).sort((a, b) => a - b);
  const low = values[0], high = values[Math.floor((values.length - 1) * (values.length > 200 ? 0.999 : 1))];
  const logarithmic = low > 0 && high / low > 10, height = v => logarithmic ? Math.log(v) : v;
  const first = finite[0][0], end = Math.max(finite.at(-1)[0], first + 1);
  const x = step => LEFT + (WIDE - LEFT - 10) * (step - first) / (end - first);
  const y = v => HIGH - BOTTOM - (HIGH - BOTTOM - 10) * (height(Math.min(v, high)) - height(low)) / (height(high) - height(low) || 1);
  const parts = [drawn("path", { class: "axis", d: `M${LEFT} 6V${HIGH - BOTTOM}H${WIDE - 10}` })];
  for (const v of ticks(low, high, logarithmic))
    parts.push(drawn("path", { class: "mark", d: `M${LEFT} ${y(v).toFixed(1)}H${WIDE - 10}` }),
      drawn("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, written(v, 3)));
  parts.push(drawn("text", { x: LEFT, y: HIGH - 6 }, String(first)),
    drawn("text", { x: WIDE - 10, y: HIGH - 6, "text-anchor": "end" }, `step ${end}`),
    drawn("text", { x: (WIDE + LEFT) / 2, y: HIGH - 6, "text-anchor": "middle" }, logarithmic ? "logarithmic" : ""));
  for (const which of new Set(finite.map(point => point[2]))) {
    const points = finite.filter(point => point[2] === which), many = points.length > 150;
    const path = list => list.map(([step, v], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(v).toFixed(1)}`).join("");
    if (many) parts.push(drawn("path", { class: "curve pale" + CURVES[which % 3], d: path(points) }));
    parts.push(drawn("path", { class: "curve" + CURVES[which % 3], d: path(many ? smoothed(points, height, logarithmic) : points) }));
    if (which) parts.push(drawn("text", { x: WIDE - 14, y: y(points.at(-1)[1]) - 5, "text-anchor": "end" }, `optimizer ${which + 1}`));
  }
  at("loss").replaceChildren(drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img",
    "aria-label": `loss, from ${written(finite[0][1], 4)} to ${written(finite.at(-1)[1], 4)} in ${state.count} steps` }, ...parts));
}

function smoothed(points, height, logarithmic) {   // the running mean, on the axis that is shown
  let mean = 0, weight = 0;
  return points.map(([step, v]) => {
    mean = 0.95 * mean + 0.05 * height(v);
    weight = 0.95 * weight + 0.05;
    return [step, logarithmic ? Math.exp(mean / weight) : mean / weight];
  });
}

// -- layers

function layers() {                       // one row for each layer; its cells are filled with each record
  at("title").textContent = document.title = `${meta.title}: live training`;
  layer = Math.min(layer, Math.max(0, meta.layers.length - 1));
  if (parameter === null) layer = Math.max(0, meta.layers.findIndex(one => one.parameters.length));
  rows = meta.layers.map((one, i) => {
    const cells = ["output", "gradient", "ratio"].map(name => element("span", { "data-cell": name }));
    const button = element("button", { type: "button", class: "layer", "data-layer": one.name, "aria-pressed": "false",
      onclick: () => choose(i) },
    element("span", {}, element("span", { class: "who" }, one.name), element("span", { class: "kind" }, one.kind)), ...cells);
    return { ...one, i, button, cells };
  });
  at("rows").replaceChildren(...rows.map(row => row.button));
  at("left-out").textContent = meta.leftOut ? `${meta.leftOut} more layers are left out.` : "";
  at("left-out").hidden = !meta.leftOut;
  choose(layer);
}

function choose(i) {
  layer = i;
  rows.forEach((row, j) => row.button.setAttribute("aria-pressed", String(j === i)));
  if (!rows[i]) return;
  const own = rows[i].parameters;
  at("which").replaceChildren(...(own.length ? own : [-1]).map(p => element("option", { value: p },
    p < 0 ? rows[i].name : `${meta.parameters[p].name} (${meta.parameters[p].shape})`)));
  parameter = own.length ? own[0] : -1;
  maps();
}

function bars(text) {                     // a small histogram: a character gives a bar's height
  const parts = [...text].map((letter, i) => {
    const high = (letter.charCodeAt(0) - 48) / 63 * 20;
    return high ? `M${i} 20v${-high.toFixed(1)}h1v${high.toFixed(1)}z` : "";
  });
  return drawn("svg", { viewBox: `0 0 ${BINS} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("path", { class: "bars", d: parts.join("") }));
}

function spark(values) {                  // the course of positive numbers, on a logarithmic axis
  const logs = values.map(v => typeof v === "number" && v > 0 ? Math.log(v) : null), known = logs.filter(v => v !== null);
  if (known.length < 2) return "";
  const low = Math.min(...known), high = Math.max(...known, low + 0.7);
  let pen = "M";
  const d = logs.map((v, i) => {
    if (v === null) { pen = "M"; return ""; }
    const point = `${pen}${(100 * i / (logs.length - 1)).toFixed(1)} ${(18 - 16 * (v - low) / (high - low)).toFixed(1)}`;
    pen = "L";
    return point;
  });
  return drawn("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("path", { class: "curve", d: d.join(""), "vector-effect": "non-scaling-stroke" }));
}

function faulty(part) {                   // a mark for nan and inf
  return part && part[6] > 0 ? element("span", { class: "bad" }, `${written(100 * part[6], 3)} % nan or inf `) : null;
}

function fill({ cells, parameters, i }) {
  const newest = records.at(-1), p = parameters[0];
  if (!newest) return;
  const output = newest.a[i], [, grad, ratio] = newest.p[p] || [];
  const dead = output && output[5] > 0.01 ? `, ${written(100 * output[5], 2)} % zero` : "";
  cells[0].replaceChildren(...(output ? [bars(output[2]),
    element("span", { class: "number" }, faulty(output) || `rms ${written(output[4], 3)}${dead}`)] : []));
  cells[1].replaceChildren(...(grad ? [spark(records.map(r => r.p[p] && r.p[p][1] ? r.p[p][1][4] : null)),
    element("span", { class: "number" }, faulty(grad) || written(grad[4], 3))] : parameters.length ? [element("span", { class: "number" }, "none")] : []));
  const place = r => Math.max(0, Math.min(100, 100 * (Math.log10(r) + 6) / 6));
  const scale = typeof ratio === "number" ? [element("span", { class: "scale", "aria-hidden": "true" },
    element("i", { style: `width: ${place(ratio)}%` }), element("b", { style: `left: ${place(1e-3)}%` })),
  element("span", { class: "number" }, `${written(ratio, 3)}${ratio > 0.05 ? " (large)" : ""}`)] : [];
  cells[2].replaceChildren(...scale);
}

// -- histograms over time

function maps() {
  const p = Number(parameter);
  heat("values", records.map(r => p >= 0 && r.p[p] ? [r.step, r.p[p][0]] : null), "this layer has no parameters");
  heat("grads", records.map(r => p >= 0 && r.p[p] ? [r.step, r.p[p][1]] : null), p < 0 ? "this layer has no parameters" : "no gradient");
  heat("outputs", records.map(r => [r.step, r.a[layer]]), "the output was not seen: the layer is compiled, or was not called");
}

function heat(id, columns, missing) {     // columns: [step, histogram]; the colour is the share of the elements
  const canvas = at(id), shown = columns.filter(c => c && c[1] && typeof c[1][3] === "number");
  const wide = canvas.clientWidth, high = canvas.clientHeight, dense = Math.max(1, devicePixelRatio);
  if (!wide) return;
  canvas.width = wide * dense;
  canvas.height = high * dense;
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.body), colour = name => style.getPropertyValue(name).trim();
  pen.scale(dense, dense);
  pen.font = "12px " + colour("--mono");
  pen.fillStyle = colour("--soft");
  if (!shown.length) {
    if (records.length) wrap(pen, missing, wide);
    canvas.setAttribute("aria-label", records.length ? missing : "no record yet");
    at(id + "-now").textContent = "";
    return;
  }
  const LEFT = 50, BOTTOM = 18, ends = (k, share) => { const all = shown.map(c => c[1][k]).sort((a, b) => a - b); return all[Math.floor((all.length - 1) * share)]; };
  let low = ends(0, 0.03), top = ends(1, 0.97);
  if (top <= low) { low -= Math.abs(low) / 2 || 1; top += Math.abs(top) / 2 || 1; }
  const y = v => (high - BOTTOM) * (1 - (v - low) / (top - low)), first = shown[0][0], last = Math.max(shown.at(-1)[0], first + 1);
  const start = shown.length > 1 ? first - (shown[1][0] - first) : first - 1, x = step => LEFT + (wide - LEFT) * (step - start) / (last - start);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, wide - LEFT, high - BOTTOM);
  pen.clip();
  shown.forEach(([step, [lo, hi, text]], i) => {
    const left = Math.floor(x(i ? shown[i - 1][0] : start) * dense) / dense, right = Math.floor(x(step) * dense) / dense, size = (hi - lo) / BINS;
    for (let b = 0; b < BINS; b++) {
      const share = (text.charCodeAt(b) - 48) / 63;
      if (!share) continue;
      pen.fillStyle = `rgba(${colour("--plus")}, ${(0.06 + 0.9 * share ** 0.7).toFixed(2)})`;
      const [upper, lower] = [b + 1, b].map(k => Math.round(y(lo + size * k) * dense) / dense);
      pen.fillRect(left, upper, right - left, Math.max(1, lower - upper));
    }
  });
  pen.restore();
  pen.strokeStyle = colour("--edge");
  pen.strokeRect(LEFT + 0.5, 0.5, wide - LEFT - 1, high - BOTTOM - 1);
  pen.fillStyle = colour("--soft");
  pen.textAlign = "right";
  for (const v of ticks(low, top, false).filter(v => y(v) > 6 && y(v) < high - BOTTOM)) pen.fillText(written(v, 2), LEFT - 5, y(v) + 4);
  pen.fillText(`step ${last}`, wide, high - 4);
  pen.textAlign = "left";
  pen.fillText(String(first), LEFT, high - 4);
  const now = shown.at(-1)[1], text = `mean ${written(now[3], 2)}, rms ${written(now[4], 2)}`;
  at(id + "-now").textContent = text;
  canvas.setAttribute("aria-label", `histograms of ${shown.length} steps, from ${written(low, 3)} to ${written(top, 3)}; now ${text}`);
}

function wrap(pen, text, wide) {
  let line = "", y = 16;
  for (const word of text.split(" ")) {
    if (pen.measureText(line + word).width > wide) { pen.fillText(line, 0, y); line = ""; y += 16; }
    line += word + " ";
  }
  pen.fillText(line, 0, y);
}

// -- predictions and ops

function guess(found) {
  const place = at("predictions");
  at("right").textContent = "";
  if (!found) {
    place.replaceChildren(element("p", { class: "soft" }, "None seen yet: they are the input of a loss of nn.functional, or the model's output."));
  } else if (found.kind === "classes") {
    at("right").textContent = `${written(100 * found.right, 3)} % of ${found.of} samples of the batch right`;
    place.replaceChildren(...found.rows.map(sample));
  } else if (found.kind === "numbers") {
    place.replaceChildren(scatter(found.points));
  } else if (found.kind === "array") {
    numbers[0] = found.array;
    place.replaceChildren(shown(0));
  } else place.replaceChildren(element("pre", { tabindex: 0 }, found.text));
}

function sample({ target, best, picture }) {
  const right = best[0][0] === target;
  const bars = best.flatMap(([name, p], i) => [element("b", {}, String(name)),
    element("i", { class: name === target ? "right" : i ? "" : "wrong", style: `width: ${100 * (typeof p === "number" ? Math.max(0, Math.min(1, p)) : 0)}%` }),
    element("span", {}, typeof p === "number" ? `${(100 * p).toFixed(p > 0.0995 ? 0 : 1)} %` : p)]);
  return element("div", { class: "sample" }, picture ? image(picture, target) : null,
    element("span", {}, `class ${target}`, element("br"), element("span", { class: right ? "soft" : "bad" }, right ? "right" : "wrong")),
    element("span", { class: "best" }, ...bars));
}

function image({ size: [wide, high, channels], bytes }, target) {
  const canvas = element("canvas", { width: wide, height: high, role: "img", "aria-label": `image of class ${target}` });
  const data = atob(bytes), pen = canvas.getContext("2d"), pixels = pen.createImageData(wide, high);
  for (let i = 0; i < wide * high; i++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = data.charCodeAt(channels * i + (channels === 3 ? c : 0));
    pixels.data[4 * i + 3] = 255;
  }
  pen.putImageData(pixels, 0, 0);
  return canvas;
}

function scatter(points) {
  const finite = points.filter(point => point.every(v => typeof v === "number"));
  if (!finite.length) return element("p", { class: "bad" }, "All predictions are nan or inf.");
  const WIDE = Math.max(240, at("predictions").clientWidth), HIGH = 250, LEFT = 56, BOTTOM = 34;
  const all = finite.flat(), low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
  const x = v => LEFT + (WIDE - LEFT - 10) * (v - low) / span, y = v => HIGH - BOTTOM - (HIGH - BOTTOM - 8) * (v - low) / span;
  const marks = ticks(low, high, false).flatMap(v => [drawn("text", { x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, written(v, 2)),
    drawn("text", { x: x(v), y: HIGH - 20, "text-anchor": "middle" }, written(v, 2))]);
  return drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img",
    "aria-label": `predictions over targets of ${finite.length} samples; good predictions are on the diagonal` },
  drawn("path", { class: "axis", d: `M${LEFT} 4V${HIGH - BOTTOM}H${WIDE - 10}` }), ...marks,
  drawn("path", { class: "mark", d: `M${x(low)} ${y(low)}L${x(high)} ${y(high)}` }),
  ...finite.map(([t, p]) => drawn("circle", { class: "point", cx: x(t).toFixed(1), cy: y(p).toFixed(1), r: 3.2 })),
  drawn("text", { x: (WIDE + LEFT) / 2, y: HIGH - 4, "text-anchor": "middle" }, "target; upwards: prediction"));
}

function slow(ops) {
  if (!ops.length) {
    at("ops").replaceChildren(element("p", { class: "soft" }, records.length ? "Another profile records, or the step has too many ops." : "They appear with the first step."));
    return;
  }
  const top = Math.max(...ops.map(op => op[1]));
  at("step-time").textContent = `of one step: ${written(state.ms, 3)} ms`;
  at("ops").replaceChildren(...ops.map(([name, ms, count]) => element("div", { class: "op" }, element("span", {}, name),
    element("i", { style: `width: ${100 * ms / top}%` }), element("span", {}, `${written(ms, 3)} ms`),
    element("span", {}, count > 1 ? `${count}×` : ""))));
}

// -- controls

const act = name => transport(name, "POST").catch(error => note(String(error)));
at("toggle").onclick = () => act(at("toggle").textContent.includes("pause") ? "pause" : "go");
at("one").onclick = () => act("step");
at("which").onchange = () => { parameter = at("which").value; maps(); };
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(event.key === " " ? "button, select, a, pre" : "select")) return;
  const key = { " ": "toggle", ArrowRight: "one", n: "one" }[event.key];
  if (!key || at(key).disabled) return;
  event.preventDefault();
  at(key).click();
});
addEventListener("resize", () => { if (records.length || losses.length) render(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", maps);
ask();
