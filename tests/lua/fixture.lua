-- Loads recipes from text with a small schema of every type: specs do not depend on Tycho's own knobs.
local native = require "tycho.native"
local session = require "tycho.session"

local M = {}
local positive = { min = 0, min_exclusive = true }

local function field(name, type, default, more)
  local out = { name = name, type = type, default = default, help = "Help of " .. name .. "." }
  for key, value in pairs(more or {}) do out[key] = value end
  out.required = out.default == nil or nil
  return out
end

local kUnits = { units = { "ba", "tok" }, min = 0 }
local warmup = field("warmup", "duration", "0ba", kUnits)

M.schema = { type = "struct", fields = {
  field("run_name", "string", "run"),
  field("seed", "integer", 17, { min = 0 }),
  field("precision", "enum", "fp32", { values = { "fp32", "bf16" } }),
  field("seq_len", "integer", 1024, positive),
  field("micro_batch", "duration", native.null, { optional = true, units = { "sp" }, min = 0, min_exclusive = true }),
  field("max_duration", "duration", "100ba", { units = { "ba", "tok", "sp", "ep" }, min = 0, min_exclusive = true }),
  field("model", "component", nil, { namespace = "model", usual = "llama", kinds = {
    llama = { fields = { field("width", "integer", 256, { min = 0, min_exclusive = true, multiple_of = 8 }),
      field("layers", "integer", 4, positive), field("tied", "boolean", false) } },
  } }),
  field("optimizer", "component", nil, { namespace = "optim", usual = "adamw", kinds = {
    adamw = { fields = { field("lr", "number", nil, positive),
      field("betas", "list", { 0.9, 0.95 }, { length = 2, item = { type = "number", min = 0, max = 1, max_exclusive = true } }),
      field("eps", "number", 1e-8) } },
  } }),
  field("scheduler", "component", { kind = "constant", warmup = "0ba" }, { namespace = "sched", usual = "constant", kinds = {
    constant = { fields = { warmup } },
    cosine = { fields = { warmup, field("floor", "number", 0, { min = 0, max = 1 }) } },
  } }),
  field("ckpt", "struct", {}, { fields = { field("every", "duration", "10ba", kUnits), field("keep", "integer", 3) } }),
  field("buffer", "bytes", "64MiB", { min = 1 }),
  field("tags", "map", {}, { item = { type = "string" } }),
  field("stages", "list", {}, { item = { type = "string" } }),
  field("groups", "list", {}, { item = { type = "struct", fields = { field("pattern", "string", ""), field("scale", "number", 1) } } }),
  field("eval_data", "map", {}, { item = { type = "component", namespace = "data", usual = "mds", kinds = {
    text = { fields = { field("path", "string", ""), field("len", "integer", 8) } },
    mds = { fields = { field("dir", "string", "") } },
  } } }),
  field("probe", "component", native.null, { optional = true, namespace = "probe", usual = "text", kinds = {
    text = { fields = { field("path", "string"), field("len", "integer", 8) } },
  } }),
  field("clip_norm", "number", 1),
  field("machine", "struct", {}, { shorthand = "name", fields = { field("name", "string", ""), field("gpus", "integer", 8) } }),
  field("legacy", "boolean", false),
} }

-- What checks are told of a recipe: a model of a thousand parameters, one sequence a step, a data set that is not there.
function M.facts(tree)
  local steps = tonumber(tree.max_duration:match "^(%d+)ba$")
  return { steps = steps or native.null, total_tokens = steps and steps * tree.seq_len or native.null,
    tokens_per_step = tree.seq_len, num_params = 1000 }
end

M.file = "recipes/x.lua"

-- Loads the text as recipes/x.lua. `arguments`: texts, numbered from 2 as after `tycho run FILE`. `files`: more sources.
-- lint: as `tycho check` does.
function M.load(text, arguments, files, check_tree, lint)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  M.printed = ""
  return session.load {
    file = M.file, schema = M.schema, arguments = numbered, lint = lint,
    read_file = function(path)
      local found = path == M.file and text or (files or {})[path]
      if found then return found end
      return nil, "cannot read " .. path
    end,
    list_files = function(folder)
      local found = {}
      for name in pairs(files or {}) do
        if name:sub(1, #folder + 1) == folder .. "/" then found[#found + 1] = name:sub(#folder + 2) end
      end
      return found
    end,
    check_tree = check_tree or function() return {} end,
    facts = M.facts,
    output = function(printed) M.printed = M.printed .. printed end,
  }
end

-- A recipe with these lines between its first and its last.
function M.recipe(lines)
  return 'local t = require "tycho"\nlocal r = t.recipe "x"\n' .. lines .. "\nreturn r\n"
end

-- The same with everything that is required.
function M.whole(lines)
  return M.recipe("r.model = t.model.llama {}\nr.optimizer = t.optim.adamw { lr = 1e-3 }\n" .. (lines or ""))
end

-- What those lines print.
function M.prints(lines)
  M.tree(M.whole(lines))
  return M.printed
end

-- The tree of a recipe that must load.
function M.tree(text, arguments, files)
  local result = M.load(text, arguments, files)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree, result
end

-- The report of a recipe that must not load.
function M.report(text, arguments, files, check_tree)
  local result = M.load(text, arguments, files, check_tree)
  if result.problems == 0 then error("expected a report, the recipe loaded", 2) end
  return result.report
end

return M
