// Curves as the page carries them, and the part of them that a plot of some width shows.

const page = JSON.parse(document.getElementById("page-data").textContent);

/** Returns the last step of each bucket: from a list, or from progressions [first, distance, count]. */
function steps_of(curve) {
  if (curve.x) return Float64Array.from(curve.x);
  const steps = [];
  for (const [first, distance, count] of curve.progressions)
    for (let i = 0; i < count; ++i) steps.push(first + i * distance);
  return Float64Array.from(steps);
}

/** Returns the line through (xs, ys) at x, flat beyond the ends. */
function interpolated(xs, ys, x) {
  let low = 0, high = xs.length - 1;
  if (high < 0) return NaN;
  if (x <= xs[0]) return ys[0];
  if (x >= xs[high]) return ys[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
}

/** Returns the index of the number nearest to x in a sorted list. */
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  return high >= 0 && Math.abs(xs[high] - x) < Math.abs(xs[low] - x) ? high : low;
}

const numbers = list => Float64Array.from(list, y => y === null ? NaN : y);

const curves = page.curves.map(curve => {
  const mean = numbers(curve.y);
  return {
    run: curve.run, metric: curve.metric, bucket: curve.bucket, steps: steps_of(curve), mean,
    low: curve.low ? numbers(curve.low) : mean, high: curve.high ? numbers(curve.high) : mean,
    not_finite: curve.not_finite || [], num_not_finite: curve.num_not_finite || 0, last: curve.last || 0,
    positions: {}, smoothed: {weight: 0},
  };
});

const most_seconds = Math.max(0, ...page.runs.map(run => run.clock.seconds.length ? run.clock.seconds[run.clock.seconds.length - 1] : 0));
const time_unit = most_seconds < 300 ? ["seconds", 1] : most_seconds < 3 * 3600 ? ["minutes", 60]
  : most_seconds < 72 * 3600 ? ["hours", 3600] : ["days", 86400];
const axes = {
  step: {label: "steps", cursor: "step"},
  tokens: {label: "tokens trained on", cursor: "tokens"},
  time: {label: time_unit[0] + " of training", cursor: time_unit[0]},
};

/** Returns where a step of a run is on an axis. */
function on_axis(run, axis, step) {
  const clock = page.runs[run].clock;
  if (axis === "tokens") return interpolated(clock.step, clock.tokens, step);
  if (axis === "time") return interpolated(clock.step, clock.seconds, step) / time_unit[1];
  return step;
}

/** Returns the positions of a curve's buckets on an axis. */
function positions_of(curve, axis) {
  if (!curve.positions[axis])
    curve.positions[axis] = axis === "step" ? curve.steps : curve.steps.map(step => on_axis(curve.run, axis, step));
  return curve.positions[axis];
}

const kFewestSmoothed = 50;

/**
 * Returns the moving average of a curve, with Adam's correction for its beginning; a bucket of n values counts n times.
 * Curves of few values, such as evaluations, stay as they are.
 */
function smoothed(curve, weight) {
  if (curve.mean.length < kFewestSmoothed) return curve.mean;
  if (curve.smoothed.weight === weight) return curve.smoothed.y;
  const y = new Float64Array(curve.mean.length);
  let average = 0, share = 0;
  for (let i = 0; i < y.length; ++i) {
    if (!Number.isFinite(curve.mean[i])) { y[i] = NaN; continue; }
    const kept = Math.pow(weight, curve.bucket);
    average = kept * average + (1 - kept) * curve.mean[i];
    share = kept * share + (1 - kept);
    y[i] = average / share;
  }
  curve.smoothed = {weight, y};
  return y;
}

/** Returns the first and last index to draw for [from, to]: one bucket more at both sides, so that lines reach the frame. */
function indices_in(xs, from, to) {
  let first = 0, last = xs.length - 1;
  while (first <= last && xs[first] < from) ++first;
  while (last >= first && xs[last] > to) --last;
  return [Math.max(0, first - 1), Math.min(xs.length - 1, last + 1)];
}

/**
 * Returns curves on common positions, at most `most` of them: {x, curves: [{raw, low, high, smooth}]}. Where more
 * buckets are in view, those of one column become their mean, minimum and maximum: no extreme is lost. Undefined: no
 * value here, the line goes on; null: no finite value, the line breaks.
 */
function in_columns(shown, view, most) {
  const {axis, from, to, log_x, log_y, weight} = view;
  const at = log_x ? Math.log : x => x;
  const parts = shown.map(curve => {
    const xs = positions_of(curve, axis), [first, last] = indices_in(xs, from, to);
    return {curve, xs, first, last, y: weight > 0 ? smoothed(curve, weight) : null};
  });
  let xs = [];
  for (const part of parts)
    for (let i = part.first; i <= part.last; ++i) if (!log_x || part.xs[i] > 0) xs.push(part.xs[i]);
  xs = Float64Array.from(xs).sort().filter((x, i, all) => i === 0 || x !== all[i - 1]);
  const thick = xs.length > most, scale = most / (at(to) - at(from));
  const column = x => Math.floor((at(x) - at(from)) * scale);
  let ends = xs;
  if (thick) ends = xs.filter((x, i) => i + 1 === xs.length || column(x) !== column(xs[i + 1]));
  const usable = y => Number.isFinite(y) && (!log_y || y > 0);
  const rows = parts.map(part => {
    const row = {raw: new Array(ends.length), low: new Array(ends.length), high: new Array(ends.length), smooth: new Array(ends.length)};
    let k = 0, num = 0, before = -1;
    for (let i = part.first; i <= part.last; ++i) {
      if (log_x && !(part.xs[i] > 0)) continue;
      while (ends[k] < part.xs[i]) ++k;
      if (k !== before) num = 0, before = k, row.raw[k] = row.low[k] = row.high[k] = null, row.smooth[k] = part.y ? null : undefined;
      const {mean, low, high} = part.curve;
      if (!usable(mean[i])) continue;
      const bottom = usable(low[i]) ? low[i] : mean[i];
      if (num === 0) row.raw[k] = mean[i], row.low[k] = bottom, row.high[k] = high[i];
      row.raw[k] += (mean[i] - row.raw[k]) / ++num;
      row.low[k] = Math.min(row.low[k], bottom);
      row.high[k] = Math.max(row.high[k], high[i]);
      if (part.y) row.smooth[k] = part.y[i];
    }
    return row;
  });
  return {x: ends, curves: rows};
}

/**
 * Returns the range of y that shows the columns. Unless the whole range is asked for, the highest and lowest hundredth of
 * what is drawn may be outside, where it would make the range more than a third larger.
 */
function y_range(columns, view, from_zero) {
  const drawn = [];
  for (const row of columns.curves)
    for (let i = 0; i < columns.x.length; ++i) {
      if (row.raw[i] === undefined || row.raw[i] === null) continue;
      drawn.push(row.low[i], row.high[i], view.weight > 0 && row.smooth[i] !== null ? row.smooth[i] : row.raw[i]);
    }
  if (drawn.length === 0) return [NaN, NaN];
  const sorted = Float64Array.from(drawn).sort();
  let low = sorted[0], high = sorted[sorted.length - 1];
  if (!view.outliers && sorted.length >= 150) {
    const cut = Math.floor((sorted.length - 1) / 100), least = sorted[cut], greatest = sorted[sorted.length - 1 - cut];
    const room = (greatest - least) / 3;
    if (low < least - room) low = least;
    if (high > greatest + room) high = greatest;
  }
  if (view.log_y) return low === high ? [low / 2, high * 2] : [low / Math.pow(high / low, 0.05), high * Math.pow(high / low, 0.05)];
  if (from_zero && low >= 0) low = 0;
  const room = low === high ? Math.max(1e-9, Math.abs(low) * 0.05) : high * 0.05 - low * 0.05;
  return [from_zero && low === 0 ? 0 : low - room, high + room];
}
