// Controls above the plots, and the state of the page in its address.

const kMostWeight = 0.999;
const weight_at = slider => slider <= 0 ? 0 : Math.min(kMostWeight, 1 - Math.pow(10, -3 * slider / 100));
const slider_at = weight => weight <= 0 ? 0 : -Math.log10(1 - weight) / 3 * 100;

const root = document.getElementById("live");
const controls = {};

function checkbox(name, label, hint) {
  const input = element("input", {type: "checkbox", onchange: () => { view[name] = input.checked; if (name === "log_x") view.zoom = null; changed(); }});
  controls[name] = input;
  return element("label", {title: hint}, input, label);
}

function axis_choice() {
  const has = {step: true, tokens: page.runs.some(run => run.clock.tokens.some(n => n > 0)), time: most_seconds > 0};
  const choice = element("select", {"aria-label": "x axis", onchange: () => { view.axis = choice.value; view.zoom = null; changed(); }},
    ...Object.keys(axes).filter(name => has[name]).map(name => element("option", {value: name}, name === "step" ? "steps" : name)));
  controls.axis = choice;
  return element("label", {title: "what runs are laid over each other by"}, "by ", choice);
}

function smoothing_slider() {
  const shown = element("output", {});
  const input = element("input", {type: "range", min: 0, max: 100, step: 1, "aria-label": "smoothing", oninput: () => {
    const was = view.weight > 0;
    view.weight = weight_at(Number(input.value));
    changed(was === view.weight > 0);
  }});
  controls.smooth = input, controls.smooth_text = shown;
  return element("label", {title: "weight of the past in a moving average; the values stay behind it, pale"}, "smoothing ", input, shown);
}

function filter_box() {
  const num_metrics = new Set(curves.map(curve => curve.metric)).size;
  const input = element("input", {type: "search", placeholder: "find in " + num_metrics + " metrics  ( / )", "aria-label": "find metrics", size: 20, oninput: () => { filter(); show_state(); }});
  controls.filter = input;
  return input;
}

/** Shows the plots that have every typed word in the name of one of their metrics. */
function filter() {
  const words = controls.filter.value.toLowerCase().split(/\s+/).filter(word => word);
  for (const plot of plots) {
    const names = [plot.group.title, ...plot.group.metrics].map(name => name.toLowerCase());
    plot.is_filtered = !names.some(name => words.every(word => name.includes(word)));
    plot.figure.hidden = plot.is_filtered;
  }
  for (const section of root.querySelectorAll("details.section")) {
    const open = section.querySelectorAll("figure:not([hidden])").length;
    section.hidden = open === 0;
    section.querySelector(".count").textContent = open > 1 ? open + " plots" : "";
  }
  controls.none.hidden = plots.some(plot => !plot.is_filtered);
}

/** One button for each run, which hides and shows it. */
function run_buttons() {
  const own = page.runs.map((run, i) => i).filter(i => page.runs[i].parent_of === undefined);
  if (own.length < 2) return "";
  const buttons = own.map(i => {
    const mark = element("i", {});
    const button = element("button", {type: "button", class: "run", title: page.runs[i].hint || page.runs[i].folder, onclick: event => {
      if (event.shiftKey || event.altKey) view.hidden = new Set(own.filter(other => other !== i));
      else if (!view.hidden.delete(i)) view.hidden.add(i);
      changed();
    }}, mark, page.runs[i].name);
    return {i, button, mark};
  });
  controls.runs = buttons;
  return element("div", {class: "runs", role: "group", "aria-label": "runs to show"}, ...buttons.map(one => one.button),
    element("button", {type: "button", onclick: () => { view.hidden.clear(); changed(); }}, "all"),
    element("button", {type: "button", onclick: () => { view.hidden = new Set(own); changed(); }}, "none"));
}

/** Brings controls and address in line with the view. */
function show_state() {
  for (const name of ["log_x", "log_y", "outliers"]) controls[name].checked = view[name];
  controls.axis.value = view.axis;
  if (Math.abs(weight_at(Number(controls.smooth.value)) - view.weight) > 1e-4) controls.smooth.value = slider_at(view.weight);
  controls.smooth_text.textContent = view.weight > 0 ? view.weight.toFixed(3) : "off";
  controls.reset.disabled = !view.zoom;
  for (const one of controls.runs || []) {
    const look = style_of_run(one.i);
    one.mark.style.background = look.dash.length ? "repeating-linear-gradient(90deg," + look.color + " 0 5px,transparent 5px 8px)" : look.color;
    one.button.setAttribute("aria-pressed", String(!view.hidden.has(one.i)));
  }
  const state = new URLSearchParams();
  if (view.axis !== "step") state.set("by", view.axis);
  for (const name of ["log_x", "log_y", "outliers"]) if (view[name]) state.set(name, "1");
  if (Math.abs(view.weight - page.smoothing) > 1e-9) state.set("smooth", String(Number(view.weight.toFixed(4))));
  if (view.zoom) state.set("zoom", view.zoom.map(x => Number(x.toPrecision(9))).join(","));
  for (const i of view.hidden) state.append("hide", page.runs[i].folder);
  if (controls.filter.value) state.set("find", controls.filter.value);
  const text = "#" + state, now = location.hash || "#";
  if (text !== now) history.replaceState(null, "", text);
}

/** Takes the view from the address: a reload and a copied link show the same. */
function read_state() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (axes[state.get("by")] && [...controls.axis.options].some(option => option.value === state.get("by"))) view.axis = state.get("by");
  for (const name of ["log_x", "log_y", "outliers"]) view[name] = state.get(name) === "1";
  const weight = Number(state.get("smooth"));
  if (state.has("smooth") && weight >= 0 && weight < 1) view.weight = Math.min(weight, kMostWeight);
  const zoom = (state.get("zoom") || "").split(",").map(Number);
  if (zoom.length === 2 && zoom[0] < zoom[1]) view.zoom = zoom;
  const hidden = new Set(state.getAll("hide"));
  page.runs.forEach((run, i) => { if (hidden.has(run.folder) && run.parent_of === undefined) view.hidden.add(i); });
  controls.filter.value = state.get("find") || "";
}

function build() {
  controls.reset = element("button", {type: "button", onclick: () => zoom_to(null), title: "or double-click a plot"}, "show all");
  const bar = element("div", {class: "bar", role: "toolbar", "aria-label": "view of all plots"}, axis_choice(), smoothing_slider(),
    checkbox("log_x", "log x", "logarithmic x axis"), checkbox("log_y", "log y", "logarithmic y axis; values of 0 and less are left out"),
    checkbox("outliers", "whole range", "y axes reach to the highest and lowest values; otherwise the outermost hundredth may be beyond the frame, marked by triangles"),
    controls.reset, filter_box());
  controls.none = element("p", {hidden: true}, "No metric has these words in its name.");
  root.append(run_buttons(), bar, controls.none);
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const plot = plots.find(one => one.figure === entry.target);
      plot.in_view = entry.isIntersecting;
      if (plot.in_view && !plot.is_filtered) plot.draw();
    }
  }, {rootMargin: "300px"});
  const resized = new ResizeObserver(entries => {
    for (const entry of entries) plots.find(one => one.space === entry.target).refresh();
  });
  for (const name of [...new Set(page.plots.map(group => group.section))]) {
    const grid = element("div", {class: "grid"});
    for (const group of page.plots.filter(one => one.section === name)) {
      const plot = new Plot(group);
      plots.push(plot);
      grid.append(plot.figure);
    }
    root.append(element("details", {class: "section", open: true}, element("summary", {}, element("h2", {}, name), element("span", {class: "count"})), grid));
  }
  read_state();
  filter();
  for (const plot of plots) plot.dirty = true, seen.observe(plot.figure), resized.observe(plot.space);
  root.append(element("p", {class: "rule"}, page.rule + (page.watched ? " This page reloads itself when its file is written again." : "")));
  show_state();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed());
  addEventListener("hashchange", () => { view.hidden.clear(); view.zoom = null; read_state(); filter(); changed(); });
  addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.tagName === "INPUT") return;
    controls.filter.focus();
    event.preventDefault();
  });
}

document.documentElement.classList.add("live");
build();
if (page.watched) watch();
