"use strict";

// What drawings are made of: axes, points that say who they are, sliders. Pages of studies and of the documentation share it.

const every = (selector, root = document) => [...root.querySelectorAll(selector)];
const redraws = []; // a function for every chart; each draws it anew in the width it has now

function html(parent, tag, attributes = {}, text) {
  return add(document.createElement(tag), parent, attributes, text);
}

function svg(parent, tag, attributes = {}, text) {
  return add(document.createElementNS("http://www.w3.org/2000/svg", tag), parent, attributes, text);
}

function add(element, parent, attributes, text) {
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// A drawing of this height in points; a point is a pixel, so that letters have one size at every width.
function canvas(parent, height, label) {
  const width = Math.max(260, Math.floor(parent.clientWidth));
  const drawing = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  return [drawing, width];
}

// The colour of a group; on a dark page all are lighter, and black is the colour of the letters.
const paint = (colours, group) =>
  ["#000000", undefined].includes(colours[group]) ? "var(--ink)" : `color-mix(in oklab, ${colours[group]}, white var(--lift))`;

const linear = (low, high, from, to) => (x) => from + ((x - low) / (high - low || 1)) * (to - from);
const finite = (values) => values.filter(Number.isFinite);
const say = (x) => (x === null || !Number.isFinite(x) ? "?" : String(+x.toPrecision(3)));
const interval = ([value, low, high]) => (low === null ? say(value) : `${say(value)} [${say(low)}, ${say(high)}]`);

// Round numbers between both ends, at most `most` of them.
function ticks(low, high, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most || 1));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => (high - low) / s <= most) || 10 * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(+(k * step).toPrecision(10));
  return found;
}

function xAxis(drawing, scale, [low, high], [left, right], [top, bottom], title) {
  for (const x of ticks(low, high, Math.max(2, Math.floor((right - left) / 60)))) {
    svg(drawing, "line", { x1: scale(x), x2: scale(x), y1: top, y2: bottom, class: "grid" });
    svg(drawing, "text", { x: scale(x), y: bottom + 16, "text-anchor": "middle", class: "soft tick" }, say(x));
  }
  svg(drawing, "text", { x: right, y: bottom + 33, "text-anchor": "end", class: "soft" }, title);
}

function yAxis(drawing, scale, [low, high], [left, right], title) {
  for (const y of ticks(low, high, 5)) {
    svg(drawing, "line", { x1: left, x2: right, y1: scale(y), y2: scale(y), class: "grid" });
    svg(drawing, "text", { x: left - 6, y: scale(y) + 4, "text-anchor": "end", class: "soft tick" }, say(y));
  }
  svg(drawing, "text", { x: 0, y: 11, class: "soft" }, title);
}

function legend(parent, colours, groups) {
  const box = html(parent, "p", { class: "legend" });
  for (const group of groups) {
    const one = html(box, "span");
    html(one, "i", { style: `background: ${paint(colours, group)}` });
    one.append(group);
  }
}

// Points that say who they are: on hover and on focus, and the arrow keys go from one to the next.
function tell(element, words, key) {
  element.setAttribute("class", "point");
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", words);
  element.dataset.key = key;
  const root = element.closest(".chart");
  const show = (same) => every(".point", root).forEach((one) => one.classList.toggle("same", same && one.dataset.key === key));
  for (const kind of ["pointerenter", "focus"]) element.addEventListener(kind, () => (tip(element, words), show(true)));
  for (const kind of ["pointerleave", "blur"]) element.addEventListener(kind, () => (tip(), show(false)));
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const all = every(".point", element.ownerSVGElement);
    const next = all[(all.indexOf(element) + step + all.length) % all.length];
    element.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
    event.preventDefault();
  });
  const first = !element.ownerSVGElement.querySelector('.point[tabindex="0"]');
  element.setAttribute("tabindex", first ? 0 : -1);
}

function tip(element, words) {
  const box = document.getElementById("tip");
  box.style.visibility = element ? "visible" : "hidden";
  if (!element) return;
  box.textContent = words;
  const place = element.getBoundingClientRect();
  const left = Math.min(Math.max(8, place.left + 12), document.documentElement.clientWidth - box.offsetWidth - 8);
  const above = place.top - box.offsetHeight - 8;
  box.style.transform = `translate(${left}px, ${above < 4 ? place.bottom + 8 : above}px)`;
}

// A choice among words, as the switch has it; `change` is called with the word.
function choice(parent, question, words, change) {
  const field = html(parent, "fieldset");
  html(field, "legend", {}, question);
  const box = html(field, "span", { class: "choice" });
  const name = `${question}-${every(".choice").length}`;
  for (const word of words) {
    const label = html(box, "label");
    const input = html(label, "input", { type: "radio", name, value: word });
    input.checked = word === words[0];
    input.addEventListener("change", () => change(word));
    label.append(word);
  }
}

function slider(parent, name, most, value, change) {
  const box = html(parent, "label", { class: "slider" });
  html(box, "span", {}, name);
  const input = html(box, "input", { type: "range", min: 0, max: most, value });
  const shown = html(box, "output");
  input.addEventListener("input", () => change(+input.value));
  return { input, shown };
}

const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function viridis(share) {
  const place = Math.min(3.999, Math.max(0, share) * 4);
  const below = Math.floor(place);
  return `rgb(${VIRIDIS[below].map((c, k) => Math.round(c + (VIRIDIS[below + 1][k] - c) * (place - below))).join()})`;
}

// A map of numbers, row after row, below the first; neighbours of one value are one rectangle.
function heat(drawing, values, [rows, columns], x, y, colour) {
  const cells = svg(drawing, "g", { "shape-rendering": "crispEdges" });
  for (let row = 0; row < rows; row++)
    for (let from = 0, to; from < columns; from = to) {
      const value = values[row * columns + from];
      for (to = from + 1; to < columns && values[row * columns + to] === value; to++);
      svg(cells, "rect", { x: x(from), y: y(row + 1), width: x(to) - x(from) + 0.3, height: y(row) - y(row + 1) + 0.3, fill: colour(value) });
    }
  return cells;
}

function ring(drawing, cx, cy) {
  svg(drawing, "circle", { cx, cy, r: 6, fill: "none", stroke: "#fff", "stroke-width": 3 });
  svg(drawing, "circle", { cx, cy, r: 6, fill: "none", stroke: "#000", "stroke-width": 1.2 });
}

// Press or drag on a map: `change` is called with the place in points.
function picked(cells, [width, height], change) {
  const pick = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = cells.ownerSVGElement.getBoundingClientRect();
    change(((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height);
  };
  for (const kind of ["pointerdown", "pointermove"]) cells.addEventListener(kind, pick);
  cells.style.cursor = "crosshair";
}

const bytesOf = (packed) => Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));

function redraw() {
  for (const [root, draw] of redraws) if (root.clientWidth) draw();
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) redraw();
  width = innerWidth;
});
addEventListener("keydown", (event) => event.key === "Escape" && tip());
