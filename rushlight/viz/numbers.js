"use strict";
// Elements, numbers and pictures of arrays: shared by the step page and the page of a training loop.
const data = JSON.parse(document.getElementById("data").textContent);
const { numbers } = data;
const at = id => document.getElementById(id);

function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}
function drawn(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function written(value, digits = 4) {    // reasons.py writes the same
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(Math.max(digits, Math.floor(Math.log10(size)) + 1))))
    : value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
}

function shade(part, strength = 0.45) {   // part: from -1 to 1
  const held = Math.max(-1, Math.min(1, part));
  return `background: rgba(var(--${held < 0 ? "minus" : "plus"}), ${(Math.abs(held) * strength).toFixed(2)})`;
}

function level(letter) {          // of a cell's letter: its mean as a part of the array's largest mean
  const code = letter.charCodeAt(0);
  return letter === "." ? 0 : code < 91 ? (code - 64) / 26 : -(code - 96) / 26;
}

function largest(i) {             // the number that has the strongest colour in the picture of array i; 0 without a picture
  const array = i === null || i === undefined ? {} : numbers[i];
  if (array.cells) return array.top;
  if (!array.values || array.cut || array.values.length < 2) return 0;
  return Math.max(0, ...array.values.map(v => Math.abs(v)).filter(Number.isFinite));
}

function shown(i, top = largest(i), digits = 4) {   // array i: all its numbers, or facts and a picture of means. `top` has the strongest colour
  if (i === null || i === undefined) return element("span", { class: "soft" }, "not kept: backward does not need it");
  const array = numbers[i];
  if (array.parts)
    return element("div", {}, ...array.parts.map(([name, j]) => element("div", {}, `output ${name}: `, shown(j))));
  if (array.values && !array.cut) return exactly(array, top, digits);
  const facts = ["min", "mean", "max"].filter(name => name in array).map(name => `${name} ${written(array[name])}`);
  const box = element("div", { class: "numbers" },
    element("div", { class: "facts" }, ["shape " + array.shape.join("×"), ...facts].join(" · ")));
  if (array.cells) box.append(...pictured(array, top));
  return box;
}

function exactly(array, top, digits) {
  const { shape, values } = array, rows = [];
  const columns = shape.length === 1 ? Math.min(shape[0], 8) : shape.length ? shape[shape.length - 1] : 1;   // a vector is wrapped
  for (let from = 0; from < values.length; from += columns)
    rows.push(element("tr", {}, ...values.slice(from, from + columns).map(v => element("td", {
      style: values.length > 1 && typeof v === "number" ? shade(v / (top || 1)) : null, title: String(v) }, written(v, digits)))));
  const wide = columns > 3 ? { tabindex: 0, role: "group", "aria-label": "numbers, to scroll sideways" } : {};
  return element("div", { class: "numbers", ...wide },
    rows.length ? element("table", {}, ...rows) : element("span", { class: "soft" }, "no elements"),
    shape.length > 1 || shape.length && !rows.length ? element("div", { class: "facts" }, "shape " + shape.join("×")) : null);
}

function pictured(array, top) {   // the cells of a large array, what one cell is, and the colours' numbers
  const { cells, table } = array, rows = cells.length, columns = cells[0].length;
  const averaged = table[0] > rows || table[1] > columns;
  const text = averaged ? `${table.join("×")} numbers, averaged to ${rows}×${columns} cells` : `${rows}×${columns}, one cell each`;
  const label = `picture of ${text}; the strongest colour is ±${written(top)}`;
  return [
    element("div", { class: "shades", role: "img", "aria-label": label, style: `--columns: ${columns}` },
      ...cells.flatMap(row => [...row].map(letter => {
        const mean = level(letter) * array.top;
        return element("i", { style: shade(top ? mean / top : 0, 0.9), title: `${averaged ? "mean " : ""}about ${written(mean, 2)}` });
      }))),
    element("div", { class: "facts bar", "aria-hidden": "true" }, written(-top), element("i", {}), "0", element("i", { class: "up" }), written(top)),
    element("div", { class: "facts" }, text + stacked(array, rows))];
}

function stacked({ shape, table }, rows) {   // of more than 2 dimensions: what a cell averages across, such as images, kernels, heads
  if (shape.length < 3 || table[0] <= rows) return "";
  const lead = shape.slice(0, -2), matrices = lead.reduce((a, b) => a * b);
  return `. The rows of all ${lead.join("×")} matrices (${shape.slice(-2).join("×")} each) stand below each other`
    + (matrices > rows ? `: a cell is a mean across several matrices (dims ${lead.map((_, i) => i).join(", ")})` : "");
}

function brief(i, gradient = false) {   // one short line: of many numbers the mean, of a gradient the largest absolute value
  if (i === null || i === undefined) return "";
  const array = numbers[i];
  if (array.parts) return array.parts.length + " outputs";
  const { shape, values } = array, whole = values && !array.cut;
  if (whole && values.length <= 3) {
    const all = values.map(v => written(v)).join(", ");
    return shape.length ? `[${all}]` : all;
  }
  if (whole && values.every(Number.isInteger) && !gradient)   // labels and masks: their mean says nothing
    return shape.length === 1 && values.length <= 8 ? `[${values.join(", ")}]` : shape.join("×");
  const fact = gradient ? whole ? Math.max(...values.map(Math.abs)) : Math.max(Math.abs(array.min), Math.abs(array.max))
    : whole ? values.reduce((a, b) => a + b, 0) / values.length : array.mean;
  return shape.join("×") + (Number.isFinite(fact) ? `  ${gradient ? "|max|" : "mean"} ${written(fact)}` : "");
}
