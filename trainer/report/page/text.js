// Numbers as people read them.

const kSi = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]];

/** Returns four significant digits without needless zeros: 3.412, 1.2e-5. */
function number_text(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 1e-3 || size >= 1e6) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
}

/** Returns 1234567 as 1.235M. */
function count_text(value, digits = 4) {
  for (const [size, letter] of kSi)
    if (Math.abs(value) >= size) return String(Number((value / size).toPrecision(digits))) + letter;
  return String(Number(value.toPrecision(digits)));
}

function bytes_text(value) {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (Math.abs(value) >= size) return String(Number((value / size).toPrecision(3))) + " " + unit;
  return value + " B";
}

/** Returns a value of a plot whose unit is `unit`. */
function value_text(value, unit) {
  if (unit === "bytes") return bytes_text(value);
  if (unit === "%") return number_text(value * 100) + " %";
  if (unit.startsWith("tokens")) return count_text(value);
  return number_text(value);
}

/** Returns a position on an axis: whole steps in full, tokens in short. */
function position_text(axis, x) {
  if (axis === "step") return Math.round(x).toLocaleString("en-US");
  return axis === "tokens" ? count_text(x) : number_text(x);
}

/** Returns labels of the ticks of an axis. */
function tick_texts(values, unit) {
  return values.map(value => value === null ? "" : value_text(value, unit));
}

/** Makes an element with attributes and children; texts are never read as HTML. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}
