// What the page does: the switch of readings, folds, and charts drawn from the numbers of the record.

const CHARTS = JSON.parse(document.getElementById("data").textContent);
const chosen = () => every(".switch :checked").map((input) => input.value);

// A value by reading: that of the reading that is chosen, or of the part of it that the value depends on.
function under(by) {
  const words = chosen();
  const found = Object.keys(by).find((key) => key.split(" ").every((word) => words.includes(word)));
  return found === undefined ? Object.values(by)[0] : by[found];
}

// Networks by group, and against a number.
function networks(root, chart) {
  const quantities = [...new Set(chart.points.flatMap((one) => Object.keys(one.values)))];
  let quantity = quantities[0];
  const tools = html(root, "div", { class: "tools" });
  if (quantities.length > 1) choice(tools, "Show", quantities, (word) => ((quantity = word), draw()));
  const panels = html(root, "div", { class: "two" });
  const [groups, plane] = [html(panels, "div"), html(panels, "div")];
  const names = [...new Set(chart.points.map((one) => one.group))];

  function draw() {
    const points = chart.points
      .filter((one) => one.values[quantity])
      .map((one) => ({ ...one, x: under(one.values[quantity]) }))
      .filter((one) => one.x[0] !== null);
    if (!points.length) {
      for (const panel of [groups, plane]) panel.replaceChildren();
      html(groups, "p", { class: "note" }, "No network has this number under this reading.");
      return;
    }
    const ends = finite(points.flatMap((one) => one.x));
    const spare = 0.04 * (Math.max(...ends) - Math.min(...ends) || 1);
    const range = [Math.min(...ends) - spare, Math.max(...ends) + spare];
    byGroup(points, range);
    against(points, range);
  }

  const words = (one) =>
    `${one.name}\n${chart.height} ${interval(one.height)}\n${quantity} ${interval(one.x)}\n${one.source}`.trim();

  function byGroup(points, range) {
    groups.replaceChildren();
    html(groups, "p", { class: "panel-title" }, `${quantity} by network`);
    html(groups, "p", { class: "note" }, chart.baseline ? `Dashed: the mean of ${chart.baseline}.` : "");
    const rows = names.map((name) => ({ name, members: points.filter((one) => one.group === name) })).filter((row) => row.members.length);
    for (const row of rows) row.mean = row.members.reduce((sum, one) => sum + one.x[0], 0) / row.members.length;
    rows.sort((a, b) => b.mean - a.mean);
    const gap = Math.min(17, Math.max(3, 220 / points.length));
    const height = rows.reduce((sum, row) => sum + Math.max(20, gap * row.members.length + 10), 0);
    const [drawing, width] = canvas(groups, height + 50, `${quantity} by network`);
    const left = Math.min(130, 16 + 7 * Math.max(...rows.map((row) => row.name.length)));
    const scale = linear(...range, left, width - 8);
    xAxis(drawing, scale, range, [left, width - 8], [6, height + 6], quantity);
    const base = rows.find((row) => row.name === chart.baseline);
    if (base) svg(drawing, "line", { x1: scale(base.mean), x2: scale(base.mean), y1: 6, y2: height + 6, class: "zero" });
    let top = 6;
    for (const row of rows) {
      const tall = Math.max(20, gap * row.members.length + 10);
      const middle = top + tall / 2;
      svg(drawing, "text", { x: left - 10, y: middle + 4, "text-anchor": "end" }, row.name);
      row.members.forEach((one, k) => dot(drawing, one, scale(one.x[0]), middle + gap * (k - (row.members.length - 1) / 2), scale));
      top += tall;
    }
  }

  function against(points, range) {
    plane.replaceChildren();
    html(plane, "p", { class: "panel-title" }, `${quantity} and ${chart.height.split(",")[0]}`);
    html(plane, "p", { class: "note" }, chart.notes[quantity] ? under(chart.notes[quantity]) : "");
    const heights = finite(points.flatMap((one) => one.height));
    const spare = 0.04 * (Math.max(...heights) - Math.min(...heights) || 1);
    const tall = [Math.min(...heights) - spare, Math.max(...heights) + spare];
    const [drawing, width] = canvas(plane, 330, `${chart.height} against ${quantity}`);
    const x = linear(...range, 42, width - 8);
    const y = linear(...tall, 286, 20);
    yAxis(drawing, y, tall, [42, width - 8], chart.height);
    xAxis(drawing, x, range, [42, width - 8], [20, 286], quantity);
    for (const one of points) dot(drawing, one, x(one.x[0]), y(one.height[0]), x, y);
    legend(plane, chart.colours, names);
  }

  function dot(drawing, one, cx, cy, x, y) {
    const mark = svg(drawing, "g");
    const stroke = { stroke: paint(chart.colours, one.group), "stroke-width": 1.6, opacity: 0.55 };
    if (one.x[1] !== null) svg(mark, "line", { x1: x(one.x[1]), x2: x(one.x[2]), y1: cy, y2: cy, ...stroke });
    if (y && one.height[1] !== null) svg(mark, "line", { x1: cx, x2: cx, y1: y(one.height[1]), y2: y(one.height[2]), ...stroke });
    svg(mark, "circle", { cx, cy, r: 4.5, fill: paint(chart.colours, one.group) });
    tell(mark, words(one), one.name + one.source);
  }

  redraws.push([root, draw]);
}

// Shares over M1 and M2, with a slider for each.
function surface(root, chart) {
  const kinds = Object.keys(chart.surfaces);
  const groups = Object.keys(Object.values(chart.surfaces[kinds[0]])[0]);
  const state = { kind: kinds[0], group: groups[0], i: 0.2, j: 0.2 };
  const tools = html(root, "div", { class: "tools" });
  if (kinds.length > 1) choice(tools, "Share of", kinds, (word) => ((state.kind = word), draw()));
  if (groups.length > 1) choice(tools, "Surface of", groups, (word) => ((state.group = word), draw()));
  const panels = html(root, "div", { class: "two" });
  const [left, right] = [html(panels, "div"), html(panels, "div")];
  const heading = html(right, "p", { class: "panel-title" });
  const most = under(chart.m1)[0] - 1;
  const sliders = ["i", "j"].map((axis, k) =>
    slider(right, `M${"₁₂"[k]}`, most, Math.round(state[axis] * most), (value) => ((state[axis] = value / most), draw())));
  const bars = html(right, "div");
  const unpacked = new Map();
  const bytes = (group) => {
    const packed = under(chart.surfaces[state.kind])[group];
    if (!unpacked.has(packed)) unpacked.set(packed, bytesOf(packed));
    return unpacked.get(packed);
  };

  function draw() {
    const [[columns, end1], [rows, end2]] = [under(chart.m1), under(chart.m2)];
    const [i, j] = [Math.round(state.i * (columns - 1)), Math.round(state.j * (rows - 1))];
    const share = (group) => bytes(group)[j * columns + i] / 255;
    left.replaceChildren();
    html(left, "p", { class: "panel-title" }, `${state.group}: share of ${state.kind}`);
    const values = bytes(state.group);
    const top = Math.max(...groups.map((group) => Math.max(...bytes(group)))) / 255 || 1;
    const [drawing, width] = canvas(left, 330, `Share of ${state.kind} of ${state.group} over both degrees`);
    const x = linear(0, columns, 42, width - 8);
    const y = linear(0, rows, 286, 20);
    const cells = heat(drawing, values, [rows, columns], x, y, (value) => viridis(value / 255 / top));
    const scale1 = linear(0, end1, x(0.5), x(columns - 0.5));
    const scale2 = linear(0, end2, y(0.5), y(rows - 0.5));
    yAxis(drawing, scale2, [0, end2], [42, 42], "degree M₂");
    xAxis(drawing, scale1, [0, end1], [42, width - 8], [286, 286], "degree M₁");
    ring(drawing, x(i + 0.5), y(j + 0.5));
    html(left, "p", { class: "note" }, `Colours from 0 to ${Math.round(100 * top)} %. Press or drag to choose a degree.`);
    picked(cells, [width, 330], (left_, top_) => {
      const at = (value, ends, count) => Math.min(1, Math.max(0, Math.floor(linear(...ends, 0, count)(value)) / (count - 1)));
      state.i = at(left_, [42, width - 8], columns);
      state.j = at(top_, [286, 20], rows);
      draw();
    });
    [[i, columns, end1], [j, rows, end2]].forEach(([place, count, end], k) => {
      sliders[k].input.value = place;
      sliders[k].shown.textContent = ((place / (count - 1)) * end).toPrecision(3);
    });
    bars.replaceChildren();
    heading.textContent = `Share of ${state.kind} stiff to this degree`;
    const [chartOf, wide] = canvas(bars, 26 * groups.length + 8, `Share of ${state.kind} by network`);
    const from = Math.min(130, 16 + 7 * Math.max(...groups.map((group) => group.length)));
    groups.forEach((group, k) => {
      const end = from + share(group) * (wide - from - 52);
      svg(chartOf, "text", { x: from - 10, y: 26 * k + 19, "text-anchor": "end" }, group);
      svg(chartOf, "rect", { x: from, y: 26 * k + 6, width: Math.max(1, end - from), height: 17, rx: 2, fill: paint(chart.colours, group) });
      svg(chartOf, "text", { x: end + 6, y: 26 * k + 19, class: "soft share" }, `${(100 * share(group)).toFixed(share(group) < 0.1 ? 1 : 0)} %`);
    });
  }

  redraws.push([root, draw]);
}

// A number at every block, a line per network; the slider goes from the mean to single images.
function depth(root, chart) {
  const groups = [...new Set(chart.lines.map((one) => one.group))];
  const images = Object.values(chart.lines[0].values)[0].length - 1;
  const state = { image: 0 };
  const box = html(root, "div");
  const control = images && slider(root, "Image", images, 0, (value) => ((state.image = value), draw()));

  function draw() {
    box.replaceChildren();
    if (control) control.shown.textContent = state.image ? `no. ${state.image}` : "mean";
    const lines = chart.lines.map((one) => ({ ...one, y: under(one.values)[state.image] }));
    const most = 1.04 * Math.max(...finite(lines.flatMap((one) => one.y)));
    const blocks = chart.first.length;
    const [drawing, width] = canvas(box, 330, `${chart.label} at every block`);
    const x = linear(1, blocks, 50, width - 14);
    const y = linear(0, most, 286, 20);
    yAxis(drawing, y, [0, most], [42, width - 8], chart.label);
    const every_ = ticks(1, blocks, Math.max(2, Math.floor((width - 60) / 34))).filter((k) => Number.isInteger(k) && k >= 1);
    for (const k of every_) svg(drawing, "text", { x: x(k), y: 302, "text-anchor": "middle", class: "soft tick" }, k);
    svg(drawing, "text", { x: width - 8, y: 319, "text-anchor": "end", class: "soft" }, "block");
    const opens = chart.first.map((first, k) => (first ? k : -1)).filter((k) => k >= 0);
    for (const k of opens.filter((k) => k)) svg(drawing, "line", { x1: x(k + 0.5), x2: x(k + 0.5), y1: 20, y2: 286, class: "zero" });
    for (const one of lines) {
      const mark = svg(drawing, "g");
      const stroke = paint(chart.colours, one.group);
      const parts = opens.map((start, k) => [start, opens[k + 1] ?? blocks]);
      for (const [start, end] of parts.length ? parts : [[0, blocks]]) {
        const path = [];
        for (let k = start; k < end; k++) if (one.y[k] !== null) path.push(`${x(k + 1).toFixed(1)},${y(one.y[k]).toFixed(1)}`);
        svg(mark, "polyline", { points: path.join(" "), fill: "none", stroke, "stroke-width": 1.4, opacity: 0.8 });
      }
      one.y.forEach((value, k) => {
        if (value !== null) svg(mark, "circle", { cx: x(k + 1), cy: y(value), r: 2.6, fill: chart.first[k] ? "var(--page)" : stroke, stroke });
      });
      const counted = finite(one.y.filter((_, k) => !chart.first[k]));
      tell(mark, `${one.name}\n${chart.label} of counted blocks: ${say(Math.min(...counted))} to ${say(Math.max(...counted))}`, one.name);
    }
    legend(box, chart.colours, groups);
  }

  redraws.push([root, draw]);
}

// The page.
function show() {
  const words = chosen();
  for (const figure of every("[data-reading]"))
    figure.hidden = !figure.dataset.reading.split(" ").every((word) => words.includes(word));
  dimOthers(words);
  redraw();
}

// In the strip, the intervals of other readings than the chosen one are pale.
function dimOthers(words) {
  const all = every(".switch input").map((input) => input.value);
  for (const mark of every("[data-case]"))
    mark.classList.toggle("dim", mark.dataset.case.split(/[ ,]+/).some((word) => all.includes(word) && !words.includes(word)));
}

// A link to a fold opens it.
function openTarget(hash) {
  const target = hash && document.getElementById(hash.slice(1));
  if (target && target.matches("details")) {
    target.open = true;
    target.scrollIntoView();
  }
}

for (const figure of every("[data-chart]")) {
  const chart = CHARTS[figure.dataset.chart];
  ({ networks, surface, depth })[chart.kind](figure.querySelector(".drawing"), chart);
}
every(".switch input").forEach((input) => input.addEventListener("change", show));
every("details.fold").forEach((fold) => fold.addEventListener("toggle", redraw));
const all = document.getElementById("all");
if (all)
  all.addEventListener("click", () => {
    const open = all.textContent === "Open all";
    every("details.fold").forEach((fold) => (fold.open = open));
    all.textContent = open ? "Close all" : "Open all";
  });
every('a[href^="#"]').forEach((link) => link.addEventListener("click", () => openTarget(link.hash)));
addEventListener("hashchange", () => openTarget(location.hash));
addEventListener("beforeprint", () => every("details:not(.again)").forEach((fold) => (fold.open = true)));
show();
openTarget(location.hash);
