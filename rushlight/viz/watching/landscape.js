// The loss landscape: a surface on a canvas that turns, with the path of the training.
const { xs, ys, values, path, losses, steps, shares } = data;
const canvas = at("land"), pen = canvas.getContext("2d");
const RAMP = [[28, 78, 128], [70, 150, 150], [190, 205, 130], [240, 190, 90], [190, 84, 40]];
const FIRST = { yaw: 0.45 + Math.atan2(path[0][0] - path.at(-1)[0], path[0][1] - path.at(-1)[1]), pitch: 0.72, zoom: 1 };   // the end in front
let view = { ...FIRST }, turning = 0, k = path.length - 1;

const finite = [...values.flat(), ...losses].filter(v => typeof v === "number");
const scale = v => data.log ? Math.log(v) : v;
const low = Math.min(...finite), high = Math.max(...finite);
const height = v => typeof v === "number" ? (scale(v) - scale(low)) / (scale(high) - scale(low) || 1) : null;   // 0 to 1
const place = (list, v) => 2 * (v - list[0]) / (list.at(-1) - list[0]) - 1;                                     // -1 to 1

function tint(h, light = 1) {
  const t = Math.max(0, Math.min(1, h)) * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(t));
  return `rgb(${RAMP[i].map((c, j) => Math.round(Math.min(255, light * (c + (RAMP[i + 1][j] - c) * (t - i))))).join(",")})`;
}

function project(x, y, h) {               // (pixels to the right, pixels down, distance); the surface is 2 wide, 1.1 high
  const c = Math.cos(view.yaw), s = Math.sin(view.yaw), u = c * x - s * y, v = s * x + c * y, z = 1.1 * h - 0.5;
  const cp = Math.cos(view.pitch), sp = Math.sin(view.pitch), deep = cp * v - sp * z, up = sp * v + cp * z;
  const near = 5 / (5 + deep), size = 0.3 * view.zoom * Math.min(canvas.clientWidth, 1.12 * canvas.clientHeight);
  return [canvas.clientWidth / 2 + size * near * u, canvas.clientHeight * 0.5 - size * near * up, deep];
}

const nodes = values.map((row, j) => row.map((v, i) => [place(xs, xs[i]), place(ys, ys[j]), height(v)]));
const trail = path.map(([a, b], i) => [place(xs, a), place(ys, b), height(losses[i])]);

function shapes() {                       // what is drawn, with its distance
  const found = [], seen = nodes.map(row => row.map(([x, y, h]) => h === null ? null : project(x, y, h)));
  for (let j = 0; j + 1 < nodes.length; j++)
    for (let i = 0; i + 1 < nodes[j].length; i++) {
      const corners = [[j, i], [j, i + 1], [j + 1, i + 1], [j + 1, i]], points = corners.map(([b, a]) => seen[b][a]);
      if (points.includes(null)) continue;
      const hs = corners.map(([b, a]) => nodes[b][a][2]), step = 2 / (nodes.length - 1);
      const light = 1.02 - 0.28 * Math.tanh(0.6 * (hs[1] + hs[2] - hs[0] - hs[3]) / step) - 0.1 * Math.tanh((hs[2] + hs[3] - hs[0] - hs[1]) / step);
      found.push({ points, colour: tint(hs.reduce((a, b) => a + b) / 4, light), deep: points.reduce((a, p) => a + p[2], 0) / 4 });
    }
  for (let i = 0; i + 1 < trail.length; i++) {
    if (trail[i][2] === null || trail[i + 1][2] === null) continue;
    const ends = [project(...trail[i]), project(...trail[i + 1])];
    found.push({ points: ends, line: i < k, deep: (ends[0][2] + ends[1][2]) / 2 - 0.12 });
  }
  return found.sort((a, b) => b.deep - a.deep);
}

function draw() {
  const dense = Math.max(1, devicePixelRatio), style = getComputedStyle(document.body), colour = name => style.getPropertyValue(name).trim();
  canvas.width = canvas.clientWidth * dense;
  canvas.height = canvas.clientHeight * dense;
  pen.scale(dense, dense);
  pen.lineJoin = pen.lineCap = "round";
  floor(colour);
  for (const shape of shapes()) {
    pen.beginPath();
    shape.points.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
    if (shape.colour) {
      pen.closePath();
      pen.fillStyle = shape.colour;
      pen.fill();
      pen.lineWidth = 0.6;
      pen.strokeStyle = "rgba(0, 0, 0, 0.22)";
      pen.stroke();
    } else {
      for (const [width, ink] of [[6, colour("--paper")], [3, shape.line ? colour("--accent") : colour("--edge")]]) {
        pen.lineWidth = width;
        pen.strokeStyle = ink;
        pen.stroke();
      }
    }
  }
  behind(colour);
  ball(colour);
}

function behind(colour) {                 // the path again, pale: so that it is seen through hills
  pen.save();
  pen.globalAlpha = 0.4;
  pen.lineWidth = 2;
  pen.setLineDash([2, 4]);
  pen.strokeStyle = colour("--accent");
  pen.beginPath();
  trail.filter(point => point[2] !== null).map(point => project(...point)).forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
  pen.stroke();
  pen.restore();
}

function floor(colour) {                  // the square below the surface, with the names of its directions
  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => project(x, y, -0.02));
  pen.beginPath();
  corners.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
  pen.closePath();
  pen.strokeStyle = colour("--edge");
  pen.lineWidth = 1;
  pen.stroke();
  pen.fillStyle = colour("--soft");
  pen.font = "13px " + colour("--mono");
  pen.textAlign = "center";
  for (const [axis, sides] of [[0, [[0, -1.24], [0, 1.24]]], [1, [[-1.24, 0], [1.24, 0]]]]) {
    const spots = sides.map(([x, y]) => project(x, y, -0.08)), [x, y] = spots[0][2] < spots[1][2] ? spots[0] : spots[1];
    const text = `direction ${axis + 1}: ${Math.round(100 * shares[axis])} %`, half = pen.measureText(text).width / 2 + 6;
    pen.fillText(text, Math.max(half, Math.min(canvas.clientWidth - half, x)), y + 8);
  }
}

function ball(colour) {                   // the chosen step of the path
  if (trail[k][2] === null) return;
  const [x, y] = project(...trail[k]);
  pen.beginPath();
  pen.arc(x, y, 7.5, 0, 7);
  pen.fillStyle = colour("--accent");
  pen.fill();
  pen.lineWidth = 2.5;
  pen.strokeStyle = colour("--paper");
  pen.stroke();
}

function go(i) {
  k = Math.max(0, Math.min(path.length - 1, i));
  at("slider").value = k;
  at("count").textContent = `step ${steps[k]} / ${steps.at(-1)}`;
  at("said").replaceChildren(element("b", {}, `step ${steps[k]}: loss ${written(losses[k], 4)}`));
  draw();
}

// -- turning

function turn() {
  const on = !turning;
  at("turn").setAttribute("aria-pressed", String(on));
  at("turn").textContent = on ? "❚❚ stop" : "⟳ turn";
  cancelAnimationFrame(turning);
  turning = 0;
  if (!on) return;
  let before = performance.now();
  const frame = now => { view.yaw += (now - before) * 0.0004; before = now; draw(); turning = requestAnimationFrame(frame); };
  turning = requestAnimationFrame(frame);
}

function move(yaw, pitch, zoom = 1) {
  view.yaw += yaw;
  view.pitch = Math.max(0.05, Math.min(1.5, view.pitch + pitch));
  view.zoom = Math.max(0.5, Math.min(4, view.zoom * zoom));
  draw();
}

const fingers = new Map();
canvas.addEventListener("pointerdown", event => { fingers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); if (turning) turn(); });
canvas.addEventListener("pointermove", event => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const other = [...fingers].find(([id]) => id !== event.pointerId);
  fingers.set(event.pointerId, event);
  if (other) {
    const apart = one => Math.hypot(one.clientX - other[1].clientX, one.clientY - other[1].clientY);
    move(0, 0, apart(event) / (apart(before) || 1));
  } else move(0.008 * (event.clientX - before.clientX), 0.008 * (event.clientY - before.clientY));
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => fingers.delete(event.pointerId));
canvas.addEventListener("wheel", event => { event.preventDefault(); move(0, 0, Math.exp(-0.0012 * event.deltaY)); }, { passive: false });
const KEYS = {
  ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, 0.08), ArrowDown: () => move(0, -0.08),
  "+": () => move(0, 0, 1.15), "-": () => move(0, 0, 1 / 1.15), "0": () => { view = { ...FIRST }; draw(); }, " ": turn,
};
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, button") || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
at("turn").onclick = turn;
at("larger").onclick = KEYS["+"];
at("smaller").onclick = KEYS["-"];
at("home").onclick = KEYS["0"];
at("slider").max = path.length - 1;
at("slider").oninput = () => go(Number(at("slider").value));
at("low").textContent = written(low, 3);
at("high").textContent = written(high, 3) + (data.log ? " (logarithmic)" : "");
at("bar").querySelector("i").style.background = `linear-gradient(to right, ${RAMP.map(c => `rgb(${c})`).join(", ")})`;
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
go(k);
