// One plot for each group of metrics: all share the view (axis, zoom, hidden runs) and the cursor.

const view = {axis: "step", log_x: false, log_y: false, outliers: false, weight: page.smoothing, zoom: null, hidden: new Set()};
const kDashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
const kNumColors = 8;
const kViridis = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [216, 220, 60]];
const plots = [];

const is_dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Returns a colour from first (0) to last (1), dark to light, or light to dark on a dark page. */
function ramp(share) {
  const at = (is_dark() ? 1 - share : share * 0.95) * (kViridis.length - 1), i = Math.min(Math.floor(at), kViridis.length - 2);
  return "rgb(" + kViridis[i].map((c, k) => Math.round(c + (kViridis[i + 1][k] - c) * (at - i))).join(",") + ")";
}

/** Returns the colour and dash of the i-th of `count`. */
function style_of(i, count) {
  if (count > 3 * kNumColors) return {color: ramp(i / (count - 1)), dash: []};
  return {color: css("--c" + i % kNumColors), dash: kDashes[Math.floor(i / kNumColors)]};
}

function style_of_run(index) {
  const run = page.runs[index];
  if (run.share !== undefined) return {color: ramp(run.share), dash: []};
  const own = page.runs.filter(other => other.parent_of === undefined);
  return style_of(run.parent_of === undefined ? own.indexOf(run) : run.parent_of, own.length);
}

/** Returns a colour with an opacity. */
function faded(color, opacity) {
  if (color.startsWith("rgb(")) return color.replace("rgb(", "rgba(").replace(")", "," + opacity + ")");
  return color + Math.round(opacity * 255).toString(16).padStart(2, "0");
}

const is_hidden = run => view.hidden.has(page.runs[run].parent_of ?? run);

/** A plot of a group of metrics. Draws when it comes into view, and again when the view changes. */
class Plot {
  constructor(group) {
    this.group = group;
    this.lines = group.metrics.flatMap(metric => curves.filter(curve => curve.metric === metric));
    this.values = element("span", {class: "values"});
    this.space = element("div", {class: "space"});
    this.note = element("div", {class: "note"});
    this.tip = element("div", {class: "tip", hidden: true});
    this.figure = element("figure", {class: "plot" + (group.wide ? " wide" : ""), tabindex: "0",
      "aria-label": group.title + ". Arrow keys move the view, plus and minus zoom, 0 shows all.", onkeydown: event => this.key(event)},
      element("figcaption", {}, element("b", {}, group.title), " ", element("span", {class: "unit"}, group.unit), this.values),
      this.space, this.note, this.tip);
    this.in_view = this.is_filtered = false;
    this.stale = true;
  }

  shown() { return this.lines.filter(line => !is_hidden(line.run)); }

  look_of(line) {
    const metrics = this.group.metrics.filter(metric => this.lines.some(one => one.metric === metric));
    const runs = new Set(this.lines.map(one => one.run)), m = metrics.indexOf(line.metric);
    if (runs.size === 1 && metrics.length > 1) return style_of(m, metrics.length);
    const look = style_of_run(line.run);
    return metrics.length > 1 && m > 0 ? {color: look.color, dash: kDashes[1 + (m - 1) % 3]} : look;
  }

  name_of(line) {
    const run = page.runs[line.run].name;
    if (this.group.metrics.length < 2) return run;
    return page.runs.length < 2 ? line.metric : run + " · " + line.metric;
  }

  refresh(data_only = false) {
    this.stale = this.stale || !data_only;
    this.dirty = true;
    if (this.in_view && !this.is_filtered) this.draw();
  }

  draw() {
    if (!this.dirty) return;
    this.dirty = false;
    const width = this.space.clientWidth, height = this.space.clientHeight, range = x_range();
    const lines = this.drawn = this.shown();
    this.columns = in_columns(lines, {...view, from: range[0], to: range[1]}, Math.max(200, 2 * width));
    this.range = {x: range, y: y_range(this.columns, view, this.group.from_zero)};
    const nothing = !(this.range.y[0] < this.range.y[1]);
    this.note.textContent = nothing ? (lines.length === 0 ? "hidden" : view.log_y ? "no positive values here" : "no finite values here") : "";
    if (nothing || this.stale) { this.chart?.destroy(); this.chart = null; }
    if (nothing) return;
    const data = [this.columns.x, ...this.columns.curves.flatMap(row => [row.low, row.high, row.raw, row.smooth])];
    if (this.chart) this.chart.setData(data);
    else this.chart = new uPlot(this.options(width, height, lines), data, this.space);
    this.stale = false;
  }

  options(width, height, lines) {
    const grid = {stroke: css("--grid"), width: 1}, ink = css("--faint"), font = "11px system-ui, sans-serif";
    const series = [{}], bands = [];
    for (const line of lines) {
      const look = this.look_of(line), parent = page.runs[line.run].parent_of !== undefined, is_smooth = view.weight > 0;
      const first = series.length, few = line.steps.length < 40;
      const full = parent ? 0.45 : page.runs[line.run].share !== undefined ? 0.75 : 1;
      const edge = {stroke: faded(look.color, is_smooth ? 0 : 0.35 * full), width: 1, points: {show: false}};
      series.push(edge, edge,
        {stroke: faded(look.color, is_smooth ? 0.22 : full), width: 1.6, dash: look.dash, points: {show: few, size: 5, fill: look.color, stroke: look.color}},
        {stroke: faded(look.color, full), width: 1.8, dash: look.dash, points: {show: false}});
      if (line.bucket > 1 || lines.length > 0) bands.push({series: [first + 1, first], fill: faded(look.color, is_smooth ? 0.1 : 0.22 * full)});
    }
    const unit = this.group.unit;
    return {
      width, height, series, bands, legend: {show: false}, padding: [8, 12, 0, 0],
      scales: {
        x: {time: false, distr: view.log_x ? 3 : 1, range: () => this.range.x},
        y: {distr: view.log_y ? 3 : 1, range: () => this.range.y},
      },
      axes: [
        {stroke: ink, grid, ticks: grid, font, labelFont: font, label: axes[view.axis].label, labelSize: 18, size: 26, labelGap: 0,
          values: (u, ticks) => ticks.map(x => x === null ? "" : view.axis === "time" ? number_text(x) : count_text(x, 6))},
        {stroke: ink, grid, ticks: grid, font, size: 70, values: (u, ticks) => tick_texts(ticks, unit)},
      ],
      cursor: {
        y: false, points: {show: false}, sync: {key: "tycho", scales: ["x", null]}, drag: {x: true, y: false, setScale: false},
        bind: {dblclick: () => () => zoom_to(null)},
      },
      hooks: {
        setSelect: [u => {
          if (u.select.width < 4) return;
          const at = left => u.posToVal(left, "x");
          zoom_to([at(u.select.left), at(u.select.left + u.select.width)]);
          u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        }],
        setCursor: [u => this.point_at(u)],
        draw: [u => this.mark(u)],
      },
    };
  }

  /** Marks what is outside the frame, and steps whose value is not finite. */
  mark(u) {
    const ctx = u.ctx, ratio = devicePixelRatio, {top, height, left, width} = u.bbox;
    const triangle = (x, up) => {
      const y = up ? top + 2 * ratio : top + height - 2 * ratio, size = (up ? 6 : -6) * ratio;
      ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(x - 4 * ratio, y + size); ctx.lineTo(x + 4 * ratio, y + size); ctx.fill();
    };
    ctx.save();
    this.drawn.forEach((line, i) => {
      const row = this.columns.curves[i];
      ctx.fillStyle = ctx.strokeStyle = this.look_of(line).color;
      let was = 0;
      for (let k = 0; k < this.columns.x.length; ++k) {
        if (row.raw[k] === undefined) continue;
        const beyond = row.raw[k] === null ? 0 : row.high[k] > this.range.y[1] ? 1 : row.low[k] < this.range.y[0] ? -1 : 0;
        const x = u.valToPos(this.columns.x[k], "x", true);
        if (beyond && beyond !== was && x >= left && x <= left + width) triangle(x, beyond > 0);
        was = beyond;
      }
      ctx.lineWidth = 1.5 * ratio;
      for (const [step] of line.not_finite) {
        const x = u.valToPos(on_axis(line.run, view.axis, step), "x", true), y = top + 7 * ratio, size = 3 * ratio;
        if (!(x >= left && x <= left + width)) continue;
        ctx.beginPath(); ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
        ctx.moveTo(x + size, y - size); ctx.lineTo(x - size, y + size); ctx.stroke();
      }
    });
    ctx.restore();
  }

  /** Shows the values below the cursor: all in the plot that it is in, the first in the other plots. */
  point_at(u) {
    const left = u.cursor.left, x = left >= 0 ? u.posToVal(left, "x") : NaN;
    if (!(left >= 0)) { this.tip.hidden = true; this.values.replaceChildren(); return; }
    const found = [];
    for (const line of this.drawn) {
      const xs = positions_of(line, view.axis), i = nearest(xs, x);
      if (i < 0) continue;
      const room = (this.range.x[1] - this.range.x[0]) * 0.02, before = i > 0 ? xs[i] - xs[i - 1] : 0, after = i + 1 < xs.length ? xs[i + 1] - xs[i] : 0;
      if (Math.abs(xs[i] - x) > Math.max(room, before, after)) continue;
      found.push({line, i, x: xs[i], y: view.weight > 0 ? smoothed(line, view.weight)[i] : line.mean[i]});
    }
    const unit = this.group.unit;
    const swatch = line => element("i", {style: "background:" + this.look_of(line).color});
    this.values.replaceChildren(...found.slice(0, 3).map(one => element("span", {}, found.length > 1 || page.runs.length > 1 ? swatch(one.line) : "", value_text(one.y, unit))));
    if (!u.over.matches(":hover") || found.length === 0) { this.tip.hidden = true; return; }
    found.sort((a, b) => b.y - a.y);
    const kMost = 14, rest = found.length - kMost;
    const rows = found.slice(0, kMost).map(one => {
      const {low, high, bucket} = one.line, thick = high[one.i] > low[one.i];
      return element("tr", {}, element("td", {}, swatch(one.line), this.name_of(one.line)), element("td", {class: "number"}, value_text(one.y, unit)),
        element("td", {class: "extremes"}, thick ? value_text(low[one.i], unit) + " … " + value_text(high[one.i], unit) : ""));
    });
    const at = found[0].line, head = axes[view.axis].cursor + " " + position_text(view.axis, found[0].x) + (at.bucket > 1 ? ", mean of " + at.bucket + " records" : "");
    this.tip.replaceChildren(element("div", {class: "head"}, head), element("table", {}, ...rows), rest > 0 ? "and " + rest + " more" : "");
    this.tip.hidden = false;
    const over = u.over.getBoundingClientRect(), box = this.figure.getBoundingClientRect(), right = left > over.width / 2;
    const at_x = over.left - box.left + left;
    this.tip.style.left = right ? "" : at_x + 14 + "px";
    this.tip.style.right = right ? box.width - at_x + 14 + "px" : "";
    this.tip.style.top = over.top - box.top + 8 + "px";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.figure) return;
    const at = view.log_x ? Math.log : x => x, back = view.log_x ? Math.exp : x => x;
    const [from, to] = x_range().map(at), width = to - from;
    const moves = {ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "=": [0.2, -0.2], "-": [-1 / 3, 1 / 3]};
    if (event.key === "0" || event.key === "Escape") zoom_to(null);
    else if (moves[event.key]) zoom_to([back(from + width * moves[event.key][0]), back(to + width * moves[event.key][1])]);
    else return;
    event.preventDefault();
  }
}

/** Returns the ends of the x axis: the zoom, or all that is shown. */
function x_range() { return view.zoom || full_range(); }

function full_range() {
  let low = Infinity, high = -Infinity;
  for (const line of curves) {
    if (is_hidden(line.run)) continue;
    const xs = positions_of(line, view.axis);
    let first = 0;
    while (view.log_x && first < xs.length && !(xs[first] > 0)) ++first;
    if (first >= xs.length) continue;
    low = Math.min(low, xs[first]), high = Math.max(high, xs[xs.length - 1]);
  }
  if (!(low <= high)) return view.log_x ? [1, 10] : [0, 1];
  if (view.log_x) return [low, Math.max(high, low * 1.1)];
  if (low < high * 0.1) low = 0;
  return [low, high > low ? high + (high - low) * 0.01 : low + 1];
}

/** Shows a part of the x axis in all plots; null for all of it. */
function zoom_to(range) {
  const full = full_range();
  if (range) range = [Math.max(range[0], full[0]), Math.min(range[1], full[1])];
  if (range && !(range[1] - range[0] > (full[1] - full[0]) * 1e-6)) return;
  view.zoom = range && (range[0] > full[0] || range[1] < full[1]) ? range : null;
  changed(true);
}

let frame = 0, all_stale = false;
/** Draws again what a change of the view touches; `data_only` when axes and styles stay. */
function changed(data_only = false) {
  all_stale = all_stale || !data_only;
  if (frame) return;
  frame = requestAnimationFrame(() => {
    const stale = all_stale;
    frame = 0, all_stale = false;
    for (const plot of plots) plot.refresh(!stale);
    show_state();
  });
}
