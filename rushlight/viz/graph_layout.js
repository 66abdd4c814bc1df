// Layered layout of the boxes that are open now, after Sugiyama, Tagawa and Toda (1981): the algorithm of layout.py.
const LAYOUT = { gap: 30, sweeps: 12, visits: 400000, points: 20000 };

function layered(sizes, inputs, { row: between, margin }) {   // sizes: [width, height]; inputs[i]: the boxes below box i. Returns points and routes
  const depth = depthsOf(inputs);
  const points = sizes.map(([width, height], i) => ({ width, height, layer: depth[i], up: [], down: [], x: 0, y: 0 }));
  const ends = inputs.flatMap((targets, i) => targets.map(j => [i, j]));
  const longest = longestRouted(ends.map(([i, j]) => depth[j] - depth[i]));
  const routes = ends.map(([i, j]) => depth[j] - depth[i] <= longest ? routed(points, i, j) : [i, j]);
  const rows = orderedRows(points);
  placeColumns(points, rows);
  let top = 0;
  for (const row of rows) {
    const height = Math.max(...row.map(i => points[i].height), 0);
    for (const i of row) points[i].y = top + height / 2;
    top += height + between;
  }
  const left = Math.min(...points.map(p => p.x - p.width / 2)) - margin;
  for (const p of points) { p.x -= left; p.y += margin; }
  return { points, routes, width: Math.max(...points.map(p => p.x + p.width / 2)) + margin, height: top - between + 2 * margin };
}

function topological(inputs) {           // boxes before their inputs; without boxes on or below a cycle
  const waiting = inputs.map(() => 0);
  for (const targets of inputs) for (const j of targets) waiting[j]++;
  const order = inputs.map((_, i) => i).filter(i => !waiting[i]);
  for (const i of order) for (const j of inputs[i]) if (!--waiting[j]) order.push(j);
  return order;
}

function depthsOf(inputs) {
  const depth = inputs.map(() => 0);
  for (const i of topological(inputs)) for (const j of inputs[i]) depth[j] = Math.max(depth[j], depth[i] + 1);
  return depth;
}

function longestRouted(lengths) {        // longer edges are drawn straight: their points would be too many
  let room = LAYOUT.points;
  for (const length of [...lengths].sort((a, b) => a - b)) if ((room -= length - 1) < 0) return length - 1;
  return Infinity;
}

function routed(points, start, end) {    // a point in each layer between two boxes
  const way = [start];
  for (let layer = points[start].layer + 1; layer < points[end].layer; layer++)
    way.push(points.push({ width: 0, height: 0, layer, up: [], down: [], x: 0, y: 0 }) - 1);
  way.push(end);
  for (let k = 1; k < way.length; k++) { points[way[k - 1]].down.push(way[k]); points[way[k]].up.push(way[k - 1]); }
  return way;
}

const sweepsOf = points => Math.max(2, Math.min(LAYOUT.sweeps, Math.floor(LAYOUT.visits / points.length)));
const meanOf = (near, value) => near.reduce((sum, j) => sum + value(j), 0) / near.length;

function orderedRows(points) {           // the order with the fewest crossings of some sweeps down and up
  let rows = Array.from({ length: 1 + Math.max(...points.map(p => p.layer)) }, () => []);
  const seen = new Set(), stack = points.map((_, i) => i).filter(i => !points[i].up.length).reverse();
  while (stack.length) {
    const i = stack.pop();
    if (seen.has(i)) continue;
    seen.add(i);
    rows[points[i].layer].push(i);
    stack.push(...[...points[i].down].reverse());
  }
  let best = rows.map(row => [...row]), fewest = crossings(points, rows);
  for (let sweep = 0; sweep < sweepsOf(points) && fewest; sweep++) {
    const place = new Map(rows.flatMap(row => row.map((i, k) => [i, k]))), side = sweep % 2 ? "down" : "up";
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const goal = new Map(row.map(i => [i, points[i][side].length ? meanOf(points[i][side], j => place.get(j)) : place.get(i)]));
      row.sort((a, b) => goal.get(a) - goal.get(b));
      row.forEach((i, k) => place.set(i, k));
    }
    const count = crossings(points, rows);
    if (count < fewest) { fewest = count; best = rows.map(row => [...row]); }
  }
  return best;
}

function crossings(points, rows) {       // pairs of edges between neighbouring layers that cross: inversions, by a Fenwick tree
  let total = 0;
  for (let r = 1; r < rows.length; r++) {
    const place = new Map(rows[r].map((i, k) => [i, k])), tree = new Array(rows[r].length + 1).fill(0);
    let seen = 0;
    for (const i of rows[r - 1])
      for (const end of points[i].down.map(j => place.get(j)).sort((a, b) => a - b)) {
        let below = 0;
        for (let k = end + 1; k; k -= k & -k) below += tree[k];
        total += seen++ - below;
        for (let k = end + 1; k < tree.length; k += k & -k) tree[k]++;
      }
  }
  return total;
}

function placeColumns(points, rows) {    // pack each layer, then draw each point to its neighbours
  for (const row of rows) settle(points, row, row.map(() => 0));
  for (let sweep = 0; sweep < 2 * sweepsOf(points); sweep++)
    for (const row of sweep % 2 ? [...rows].reverse() : rows)
      settle(points, row, row.map(i => {
        const p = points[i], near = sweep % 2 ? (p.down.length ? p.down : p.up) : (p.up.length ? p.up : p.down);
        return near.length ? meanOf(near, j => points[j].x) : p.x;
      }));
}

function settle(points, row, goals) {    // least squares with the layer's order and gaps kept: isotonic regression by pooling
  const offsets = [], pools = [];
  row.forEach((i, k) => offsets.push(k ? offsets[k - 1] + (points[row[k - 1]].width + points[i].width) / 2 + LAYOUT.gap : 0));
  row.forEach((i, k) => {
    const weight = points[i].width ? 1 : 4;      // the points of a long edge keep it straight
    let pool = [weight * (goals[k] - offsets[k]), weight, 1];
    while (pools.length && pools[pools.length - 1][0] * pool[1] > pool[0] * pools[pools.length - 1][1]) {
      const before = pools.pop();
      pool = pool.map((v, n) => v + before[n]);
    }
    pools.push(pool);
  });
  let k = 0;
  for (const [total, weight, members] of pools)
    for (let n = 0; n < members; n++, k++) points[row[k]].x = total / weight + offsets[k];
}

function edgeStops(points, routes) {     // for each route: its points, its ends spread over the sides of the boxes
  const starts = routes.map(() => 0), ends = routes.map(() => 0);
  for (const [side, own, near] of [[starts, 0, 1], [ends, -1, -2]]) {
    const groups = new Map();
    routes.forEach((way, e) => { const i = way.at(own); groups.set(i, [...groups.get(i) || [], e]); });
    for (const [i, group] of groups) {
      group.sort((a, b) => points[routes[a].at(near)].x - points[routes[b].at(near)].x);
      const step = Math.min(26, points[i].width * 0.8 / group.length);
      group.forEach((e, k) => { side[e] = points[i].x + (k - (group.length - 1) / 2) * step; });
    }
  }
  return routes.map((way, e) => {
    const first = points[way[0]], last = points[way.at(-1)];
    return [[starts[e], first.y + first.height / 2], ...way.slice(1, -1).map(i => [points[i].x, points[i].y]), [ends[e], last.y - last.height / 2]];
  });
}

function curved(stops) {                 // vertical at each stop
  return stops.map(([x, y], k) => {
    if (!k) return `M${x.toFixed(1)} ${y.toFixed(1)}`;
    const [fromX, fromY] = stops[k - 1], half = (fromY + y) / 2;
    return `C${fromX.toFixed(1)} ${half.toFixed(1)} ${x.toFixed(1)} ${half.toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join(" ");
}
