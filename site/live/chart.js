// An exploration's charts as SVG, drawn by Apache ECharts: Spans, Lines and Bars of enginelab.exploring, and nothing
// about any one exploration. The looks are those of the still picture, enginelab.plot.exploring.
import * as echarts from "../_vendored/echarts/echarts.esm.min.js";
import { element } from "./controls.js";

const SMALL = 12; // pixels of type
const LEVEL = 17; // pixels between the rows of words above a chart
const DOTS = 24; // a curve with more points than this has a dot at every so many

// A pattern besides the colour, for who sees none: `swatch` is the same for the legend.
const LOOKS = {
  blue: { fill: "blue" },
  orange: { fill: "orange", decal: { symbol: "circle", symbolSize: 0.5, dashArrayX: [[0, 6], [3, 3]], dashArrayY: [3, 0] },
    swatch: "M4 4h.01M10 4h.01M16 4h.01M7 9h.01M13 9h.01" },
  green: { fill: "green", decal: { dashArrayX: [1, 0], dashArrayY: [1, 5], rotation: Math.PI / 4 },
    swatch: "M2 0l13 13M-4 0l13 13M8 0l13 13" },
  paper: { fill: "paper" },
  idle: { fill: null, decal: { dashArrayX: [1, 0], dashArrayY: [1, 5], rotation: -Math.PI / 4 },
    swatch: "M2 13l13 -13M-4 13l13 -13M8 13l13 -13" },
}; // prettier-ignore
const STROKES = [
  { colour: "blue-line", dash: "solid", symbol: "circle" },
  { colour: "orange-line", dash: [6, 3], symbol: "rect" },
  { colour: "ink", dash: [2, 3], symbol: "diamond" },
  { colour: "muted", dash: [7, 3, 2, 3], symbol: "triangle" },
];
const STAR = "path://M10 0L12.6 7H20L14 11.4L16.3 18.5L10 14.2L3.7 18.5L6 11.4L0 7H7.4Z";

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
// Read once for a picture: a browser works out the styles of the page anew for each question.
let colours = new Map();
let family = "";
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--figure-${name}`).trim());
  return colours.get(name);
}
const number = (value) => Number(value).toLocaleString("en-GB", { maximumSignificantDigits: 10 });
const short = (value) => Number(value).toLocaleString("en-GB", { maximumSignificantDigits: 3 });

/** A board inside `root` that shows picture after picture: `{show(charts)}`. It follows the theme and the width. */
export function makeBoard(root) {
  let charts = [];
  let drawn = [];

  function show(next) {
    charts = next;
    colours = new Map();
    family = getComputedStyle(document.body).fontFamily;
    const same = drawn.length === charts.length;
    if (!same) {
      for (const { chart } of drawn) chart.dispose();
      root.replaceChildren();
      drawn = charts.map(() => place(root));
    }
    charts.forEach((each, index) => draw(drawn[index], each, charts[index - 1], charts[index + 1]));
  }

  const again = () => charts.length && show(charts);
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth && root.clientWidth !== width) {
      width = root.clientWidth;
      again();
    }
  }).observe(root);
  return { show };
}

function place(root) {
  const parts = {
    title: element("p", { class: "live-chart-title" }),
    key: element("ul", { class: "live-key" }),
    yName: element("p", { class: "live-axis" }),
    canvas: element("div", { class: "live-chart", role: "img" }),
    xName: element("p", { class: "live-axis live-axis-x" }),
  };
  root.append(...Object.values(parts));
  return { ...parts, chart: echarts.init(parts.canvas, null, { renderer: "svg" }) };
}

function draw(parts, chart, above, below) {
  parts.title.textContent = chart.title;
  parts.yName.textContent = chart.y_label ?? "";
  // One name is enough for an axis that the next chart continues, and one legend for two that are the same.
  parts.xName.textContent = below?.kind === chart.kind && below.x_label === chart.x_label ? "" : chart.x_label;
  const key = legend(chart);
  const said = above && JSON.stringify(legend(above)) === JSON.stringify(key);
  parts.key.replaceChildren(...(said ? [] : key.map(({ label, ...look }) => element("li", {}, swatch(look), label))));
  parts.yName.hidden = !parts.yName.textContent;
  parts.xName.hidden = !parts.xName.textContent;
  parts.key.hidden = !parts.key.children.length;

  const width = parts.canvas.clientWidth;
  const font = `${SMALL}px ${family}`;
  const measure = (text) => echarts.format.getTextRect(text, font).width;
  const { rows, option } = { Spans: spans, Bars: bars, Lines: lines }[chart.kind](chart, { width, measure });
  const marks = markLevels(chart, { room: width - (rows ? labelWidth(rows, width, measure) : 50) - 20, measure });
  const top = 10 + LEVEL * marks.levels;
  const inner = rows ? Math.max(40, Math.min(36 * rows.length, 150 + 17 * rows.length)) : Math.min(260, 0.6 * width);
  const height = Math.round(top + inner + 24);
  // A change of size draws once more.
  if (parts.chart.getWidth() !== width || parts.chart.getHeight() !== height) {
    parts.canvas.style.height = `${height}px`;
    parts.chart.resize({ width, height, silent: true });
  }
  parts.chart.setOption(
    {
      animation: !still(),
      animationDuration: 0,
      animationDurationUpdate: 150,
      textStyle: { fontFamily: family, color: colour("ink"), fontSize: SMALL },
      aria: { enabled: true, label: { description: chart.title } },
      grid: { left: 4, right: 16, top, bottom: 4, containLabel: true },
      tooltip: { confine: true, renderMode: "richText", backgroundColor: colour("paper"), borderColor: colour("ink"),
        borderWidth: 1, textStyle: { color: colour("ink"), fontSize: SMALL }, ...option.tooltip },
      xAxis: axis({ type: chart.log_x ? "log" : "value", splitNumber: width < 460 ? 4 : 6, ...option.xAxis }),
      yAxis: axis(option.yAxis),
      series: [...option.series, ...(marks.placed.length ? [markSeries(marks.placed)] : [])],
    },
    { notMerge: true },
  ); // prettier-ignore
  // Paper has a width of its own, to which the style sheet for print scales what was drawn for the screen.
  parts.canvas.querySelector("svg").setAttribute("viewBox", `0 0 ${parts.chart.getWidth()} ${parts.chart.getHeight()}`);
}

function axis(own) {
  const ink = colour("ink");
  return {
    axisLine: { show: own.type !== "category", lineStyle: { color: ink }, onZero: false },
    axisTick: { show: own.type !== "category", lineStyle: { color: ink } },
    minorTick: { show: false },
    splitLine: { show: own.type !== "category", lineStyle: { color: colour("grid") } },
    ...own,
    axisLabel: { color: ink, fontSize: SMALL, hideOverlap: true, ...(own.type === "category" ? {} : { formatter: number }),
      ...own.axisLabel },
  }; // prettier-ignore
}

// --- bars in rows: Spans and Bars -----------------------------------------------------------------------------------

function spans(chart, { width, measure }) {
  const boxes = chart.spans.map(({ row, start, end, label, look }) => ({
    row, start, end, look, label,
    told: `${chart.rows[row]}${label && `, ${label}`}: ${number(start)} to ${number(end)}${chart.key[look] ? `\n${chart.key[look]}` : ""}`,
  })); // prettier-ignore
  return rowsOption(chart.rows, boxes, chart.x_end || 1, { width, measure, showMaxLabel: Number.isInteger(chart.x_end) });
}

function bars(chart, { width, measure }) {
  const sums = chart.categories.map(() => 0);
  const boxes = chart.series.flatMap(({ label, values, look }) =>
    values.map((value, row) => {
      const start = sums[row];
      sums[row] += value;
      return { row, start, end: sums[row], look, label: value ? short(value) : "",
        told: `${chart.categories[row]}, ${label}: ${number(value)}` }; // prettier-ignore
    }),
  );
  return rowsOption(chart.categories, boxes.filter(({ start, end }) => end > start), barEnd(chart), { width, measure });
}

function barEnd(chart) {
  const sums = chart.categories.map((_, row) => chart.series.reduce((sum, { values }) => sum + values[row], 0));
  return 1.04 * Math.max(...sums, chart.limit?.at ?? 0) || 1;
}

function labelWidth(rows, width, measure) {
  return Math.min(0.4 * width, 1.1 * Math.max(...rows.map(measure)) + 8);
}

function rowsOption(rows, boxes, end, { width, measure, showMaxLabel = false }) {
  const box = (_, api) => {
    const { look, label } = boxes[api.value(3)];
    const [left, middle] = api.coord([api.value(1), api.value(0)]);
    const [right] = api.coord([api.value(2), api.value(0)]);
    const height = api.size([0, 1])[1] * 0.78;
    const { fill, decal } = LOOKS[look];
    const shape = { x: left, y: middle - height / 2, width: Math.max(right - left, 0.5), height };
    const style = {
      fill: fill ? colour(fill) : "none",
      stroke: fill ? colour("ink") : "none",
      lineWidth: 0.8,
      decal: decal && { color: colour("muted"), ...decal },
    };
    const children = [{ type: "rect", shape, style }];
    const needed = measure(label) + 4;
    if (label && needed <= right - left && height >= SMALL) {
      const y = middle;
      if (decal) {
        const back = { x: (left + right - needed) / 2, y: y - SMALL / 2 - 2, width: needed, height: SMALL + 4 };
        children.push({ type: "rect", shape: back, style: { fill: colour(fill ?? "paper") } });
      }
      children.push({ type: "text", style: { text: label, x: (left + right) / 2, y, fill: colour("ink"), fontSize: SMALL,
        fontFamily: family, align: "center", verticalAlign: "middle" } }); // prettier-ignore
    }
    return { type: "group", children };
  };
  return {
    rows,
    option: {
      tooltip: { trigger: "item", formatter: ({ dataIndex, seriesIndex }) => (seriesIndex === 0 ? boxes[dataIndex].told : "") },
      xAxis: { min: 0, max: end, axisLabel: { showMaxLabel } },
      yAxis: { type: "category", inverse: true, data: rows,
        axisLabel: { interval: 0, hideOverlap: false, width: labelWidth(rows, width, measure), overflow: "break",
          lineHeight: SMALL + 1 } },
      series: [{ type: "custom", renderItem: box, clip: false, encode: { y: 0, x: [1, 2] },
        data: boxes.map(({ row, start, end: stop }, index) => [row, start, stop, index]) }],
    },
  }; // prettier-ignore
}

// --- curves ---------------------------------------------------------------------------------------------------------

function lines(chart) {
  const [low, high] = extent(chart);
  const series = chart.lines.map(({ label, xs, ys, stepped }, index) => {
    const { colour: stroke, dash, symbol } = STROKES[index % STROKES.length];
    const every = 1 + Math.floor(xs.length / DOTS);
    return {
      type: "line", name: label, data: xs.map((x, at) => [x, ys[at]]), step: stepped ? "end" : false,
      symbol, showAllSymbol: true, symbolSize: (_, { dataIndex }) => (dataIndex % every ? 0 : 7),
      lineStyle: { color: colour(stroke), width: 2, type: dash }, itemStyle: { color: colour(stroke) }, clip: false,
    }; // prettier-ignore
  });
  if (chart.here) {
    series.push({ type: "scatter", name: "your setting", data: [chart.here], symbol: STAR, symbolSize: 20, clip: false, z: 5,
      itemStyle: { color: colour("ink"), borderColor: colour("paper"), borderWidth: 1 } }); // prettier-ignore
  }
  return {
    rows: null,
    option: {
      tooltip: {
        trigger: "axis",
        formatter: (points) =>
          [...points.slice(0, 1).map(({ value }) => `${chart.x_label}: ${number(short(value[0]).replaceAll(",", ""))}`),
            ...points.map(({ seriesName, value }) => `${seriesName}: ${short(value[1])}`)].join("\n"),
      },
      xAxis: { min: low, max: high },
      yAxis: { type: chart.log_y ? "log" : "value" },
      series,
    },
  }; // prettier-ignore
}

function extent(chart) {
  if (chart.kind === "Spans") return [0, chart.x_end || 1];
  if (chart.kind === "Bars") return [0, barEnd(chart)];
  const places = [...chart.lines.flatMap(({ xs }) => xs), ...chart.marks.map(({ at }) => at), ...(chart.here ? [chart.here[0]] : [])];
  return [Math.min(...places), Math.max(...places)];
}

// --- lines across, with their words above ---------------------------------------------------------------------------

function markLevels(chart, { room, measure }) {
  const marks = chart.kind === "Bars" ? [chart.limit].filter(Boolean) : chart.marks;
  const scale = chart.log_x ? Math.log : (x) => x;
  const [low, high] = extent(chart).map(scale);
  const taken = [];
  // From the middle outwards, so that the line down from a higher name passes no lower one.
  const placed = marks
    .map(({ at, label }) => ({ at, label, x: high > low ? ((scale(at) - low) / (high - low)) * room : 0 }))
    .sort((one, other) => Math.abs(one.x - room / 2) - Math.abs(other.x - room / 2));
  for (const mark of placed) {
    const width = measure(mark.label) + 10;
    mark.right = mark.x < room / 2;
    const begin = mark.right ? mark.x : mark.x - width;
    const free = taken.findIndex((row) => row.every(([from, to]) => begin + width <= from || to <= begin));
    mark.level = free < 0 ? taken.push([]) - 1 : free;
    taken[mark.level].push([begin, begin + width]);
  }
  return { placed, levels: taken.length };
}

function markSeries(placed) {
  const mark = ({ coordSys }, api) => {
    const { label, level, right } = placed[api.value(1)];
    const x = api.coord([api.value(0), 0])[0];
    const top = coordSys.y - 3 - LEVEL * level;
    const ink = colour("ink");
    return {
      type: "group",
      children: [
        { type: "line", shape: { x1: x, y1: top - (level ? 12 : 0), x2: x, y2: coordSys.y + coordSys.height },
          style: { stroke: ink, lineWidth: 1.2, lineDash: [4, 2] } },
        { type: "text", style: { text: label, x: x + (right ? 4 : -4), y: top, fill: ink, fontSize: SMALL,
          fontFamily: family, align: right ? "left" : "right", verticalAlign: "bottom" } },
      ],
    }; // prettier-ignore
  };
  return { type: "custom", renderItem: mark, clip: false, silent: true, z: 4, encode: { x: 0 }, tooltip: { show: false },
    data: placed.map(({ at }, index) => [at, index]) }; // prettier-ignore
}

// --- the legend -----------------------------------------------------------------------------------------------------

function legend(chart) {
  if (chart.kind === "Spans") return Object.entries(chart.key).map(([look, label]) => ({ look, label }));
  if (chart.kind === "Bars") return chart.series.length > 1 ? chart.series.map(({ look, label }) => ({ look, label })) : [];
  if (chart.lines.length === 1 && !chart.here) return [];
  const curves = chart.lines.map(({ label }, index) => ({ stroke: index % STROKES.length, label }));
  return chart.here ? [...curves, { here: true, label: "your setting" }] : curves;
}

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function swatch({ look, stroke, here }) {
  const svg = shape("svg", { width: 26, height: 13, viewBox: "0 0 26 13", "aria-hidden": "true" });
  if (look) {
    const { fill, swatch: pattern } = LOOKS[look];
    svg.setAttribute("width", 18);
    svg.setAttribute("viewBox", "0 0 18 13");
    const style = `fill: ${fill ? `var(--figure-${fill})` : "none"}; stroke: var(--figure-${fill ? "ink" : "muted"})`;
    svg.append(shape("rect", { x: 0.5, y: 0.5, width: 17, height: 12, style }));
    if (pattern) svg.append(shape("path", { d: pattern, style: "stroke: var(--figure-muted); stroke-width: 1.3; stroke-linecap: round; fill: none" }));
  } else if (here) {
    svg.append(shape("path", { d: STAR.slice(7), transform: "translate(6 0) scale(.7)", style: "fill: var(--figure-ink)" }));
  } else {
    const { colour: name, dash, symbol } = STROKES[stroke];
    const paint = `stroke: var(--figure-${name}); fill: var(--figure-${name})`;
    svg.append(shape("path", { d: "M0 6.5H26", style: paint, "stroke-width": 2, "stroke-dasharray": dash === "solid" ? "none" : dash.join(" ") }));
    const marks = { circle: "M9.5 6.5a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", rect: "M9.5 3h7v7h-7z", diamond: "M13 2l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
      triangle: "M13 2.5l4 7.5h-8z" }; // prettier-ignore
    svg.append(shape("path", { d: marks[symbol], style: paint }));
  }
  return svg;
}
