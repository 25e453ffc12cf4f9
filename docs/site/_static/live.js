"use strict";

// The pages of the documentation that move. Numbers come from LIVE, drawings from drawing.js.

const decades = (x) => (x >= 0.01 && x < 10000 ? String(+x.toPrecision(3)) : x.toExponential(1));

// Where h times the eigenvalues of a run lie beside the region of stability of a method.
function region(root, data) {
  let method = data.methods[0];
  const tools = html(root, "div", { class: "tools" });
  choice(tools, "Method", data.methods.map((one) => one.name), (word) => ((method = data.methods.find((one) => one.name === word)), draw()));
  const step = slider(root, "step h", 400, 280, () => draw());
  step.input.setAttribute("aria-label", "step size h");
  const said = html(root, "p", { class: "panel-title", "aria-live": "polite" });
  const panels = html(root, "div", { class: "two" });
  const [plane, course] = [html(panels, "div"), html(panels, "div")];

  function draw() {
    const h = 10 ** (-4 + (4 * step.input.value) / 400);
    step.shown.textContent = decades(h);
    const beyond = method.largest.map((pair) => pair.map((most) => most !== null && h > most));
    const unstable = beyond.map((pair) => pair.some(Boolean));
    const share = unstable.filter(Boolean).length / unstable.length;
    said.textContent = `${method.name}, h = ${decades(h)}: an error grows in ${Math.round(100 * share)} % of the time.`;
    inPlane(h, beyond);
    overTime(unstable);
  }

  function inPlane(h, beyond) {
    plane.replaceChildren();
    const [xs, ys] = [[-7.5, 2.5], [-5.5, 5.5]];
    const tall = 20 + ((Math.max(260, plane.clientWidth) - 50) * (ys[1] - ys[0])) / (xs[1] - xs[0]); // one scale for both axes
    const [drawing, width] = canvas(plane, tall + 44, "h times the eigenvalues, and the region of stability");
    const x = linear(...xs, 42, width - 8);
    const y = linear(...ys, tall, 20);
    yAxis(drawing, y, ys, [42, width - 8], "Im h lambda");
    xAxis(drawing, x, xs, [42, width - 8], [20, tall], "Re h lambda");
    for (const line of method.outline) {
      const points = line.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
      svg(drawing, "polygon", { points, class: "stable" });
    }
    let outside = 0;
    data.eigenvalues.forEach((pair, k) =>
      pair.forEach(([re, im], j) => {
        if (h * re < xs[0] || h * re > xs[1] || Math.abs(h * im) > ys[1]) outside += 1;
        else svg(drawing, "circle", { cx: x(h * re), cy: y(h * im), r: 2.5, class: beyond[k][j] ? "bad" : "good" });
      }));
    const rest = outside ? ` ${outside} of ${2 * data.t.length} eigenvalues lie outside of the picture.` : "";
    html(plane, "p", { class: "note" }, `Inside of the line an error does not grow.${rest}`);
  }

  function overTime(unstable) {
    course.replaceChildren();
    const [drawing, width] = canvas(course, 330, "The solution, and where the step is too long");
    const xs = [data.t[0], data.t[data.t.length - 1]];
    const x = linear(...xs, 42, width - 8);
    const y = linear(-2.4, 2.4, 286, 20);
    yAxis(drawing, y, [-2.4, 2.4], [42, width - 8], "u");
    xAxis(drawing, x, xs, [42, width - 8], [20, 286], "t");
    data.t.forEach((t, k) => svg(drawing, "circle", { cx: x(t), cy: y(data.u[k]), r: 2.2, class: unstable[k] ? "bad" : "good" }));
    html(course, "p", { class: "note" }, `${data.problem}. Orange: there the step is longer than the largest stable one.`);
  }

  redraws.push([root, draw]);
}

// SAI / SI over the fast rate and the departure from normality, for a state that can be turned.
function theorem2(root, data) {
  const maps = data.maps.map((packed) => new Int16Array(bytesOf(packed).buffer));
  const [low, high] = data.decades;
  const count = data.count;
  const place = { column: 30, row: 0 };
  const turn = slider(root, "state", data.angles.length - 1, 4, () => draw());
  const rate = slider(root, "fast s", count - 1, place.column, (value) => ((place.column = value), draw()));
  const off = slider(root, "c", count - 1, place.row, (value) => ((place.row = value), draw()));
  const said = html(root, "p", { class: "panel-title", "aria-live": "polite" });
  const box = html(root, "div");
  const blend = (share) => `color-mix(in oklab, ${share < 0 ? "#0072b2" : "#d55e00"} ${Math.round(100 * Math.min(1, Math.abs(share)))}%, #f4f4f4)`;

  function draw() {
    const angle = data.angles[turn.input.value];
    const values = maps[turn.input.value];
    const at = (k) => 10 ** (low + ((high - low) * k) / (count - 1));
    turn.shown.textContent = `${angle}°`;
    rate.input.value = place.column;
    off.input.value = place.row;
    rate.shown.textContent = decades(at(place.column));
    off.shown.textContent = decades(at(place.row));
    const ratio = 10 ** (values[place.row * count + place.column] / 100);
    said.textContent = `s = ${decades(at(place.column))}, c = ${decades(at(place.row))}: SAI is ${decades(ratio)} times SI.`;
    box.replaceChildren();
    const [drawing, width] = canvas(box, 360, "SAI over SI, by the fast rate and the departure from normality");
    const x = linear(0, count, 42, width - 8);
    const y = linear(0, count, 316, 20);
    const cells = heat(drawing, values, [count, count], x, y, (value) => blend(value / 100 / data.colours));
    yAxis(drawing, linear(low, high, y(0.5), y(count - 0.5)), [low, high], [42, 42], "log c, departure from normality");
    xAxis(drawing, linear(low, high, x(0.5), x(count - 0.5)), [low, high], [42, width - 8], [316, 316], "log s, the fast rate");
    ring(drawing, x(place.column + 0.5), y(place.row + 0.5));
    picked(cells, [width, 360], (left, top) => {
      const whole = (value) => Math.min(count - 1, Math.max(0, Math.floor(value)));
      place.column = whole(linear(42, width - 8, 0, count)(left));
      place.row = whole(linear(316, 20, 0, count)(top));
      draw();
    });
  }

  redraws.push([root, draw]);
}

for (const figure of every("[data-live]"))
  ({ region, theorem2 })[figure.dataset.live](figure.querySelector(".drawing"), LIVE[figure.dataset.live]);
redraw();
