-- Spaces of values as Hydra, Optuna, Ray Tune and Weights & Biases call them, and how an argument of a sweep writes them here.
local literal = require "tycho.overrides.literal"

local M = {}

-- Name elsewhere -> ours, with two numbers. `span`: a logarithmic scale where the ends are far apart.
local kCalled = { range = "range", log = "log", int = "int", normal = "normal", interval = "span", uniform = "range",
  quniform = "range", q_uniform = "range", float = "range", suggest_float = "range", suggest_uniform = "range", arange = "range",
  loguniform = "log", log_uniform = "log", log_uniform_values = "log", qloguniform = "log", q_log_uniform_values = "log",
  suggest_loguniform = "log", geomspace = "log", lograndint = "log", int_uniform = "int", suggest_int = "int", randint = "int",
  randn = "normal", gauss = "normal", qrandn = "normal", q_normal = "normal" }
local kLists = { choice = true, grid_search = true, categorical = true, suggest_categorical = true, grid = true }
local kWithoutEnd = { randint = true, lograndint = true }   -- their last number is not drawn
local kFarApart = 20

-- The name and what stands in the brackets of "tune.loguniform(1e-4, 1e-2)", without the module; nil for other text.
function M.call(text)
  local path, body = text:match "^([%a_][%w_%.]*)%((.*)%)$"
  if path then return path:match("[^%.]*$"):lower(), body end
end

-- The logarithmic scale where the ends are far apart, else the linear one; of whole numbers for keys that are integers.
local function scale(kind, low, high, is_integer)
  if kind == "span" then kind = low > 0 and high > kFarApart * low and not is_integer and "log" or "range" end
  return kind == "range" and is_integer and "int" or kind
end

-- Whether these texts are values of the key.
local function all_fit(spec, texts)
  for _, text in ipairs(spec and texts or {}) do
    if literal.read(spec, text) == nil then return false end
  end
  return true
end

local function list_of(spec, parts)
  return #parts > 0 and all_fit(spec, parts) and ("choice(%s)"):format(table.concat(parts, ",")) or nil
end

-- How an argument writes the call `name` with what stands in its brackets, for a key of this spec (nil: it is not known); nil
-- where that does not say what is meant, or does not fit the key.
function M.spelling(spec, name, body)
  local parts = literal.split(body:match "^%[(.*)%]$" or body:match "^{(.*)}$" or body)
  if kLists[name] then return list_of(spec, parts) end
  local numbers = {}
  for i, part in ipairs(parts) do parts[i] = part:gsub("^%l[%w_]*%s*=%s*", "") end   -- low=1 of Python
  for i, part in ipairs(parts) do numbers[i] = tonumber(part) end
  local low, high = numbers[1], numbers[2]
  if not kCalled[name] or not high or #numbers ~= #parts then return nil end
  if kWithoutEnd[name] then high, parts[2] = high - 1, ("%d"):format(high - 1) end
  local kind = scale(kCalled[name], low, high, spec and spec.type == "integer")
  local is_right = kind == "normal" and high > 0 or kind ~= "normal" and low < high and (kind ~= "log" or low > 0)
  if not is_right or not all_fit(spec, { parts[1], kind ~= "normal" and parts[2] or nil }) then return nil end
  return ("%s(%s,%s)"):format(kind, parts[1], parts[2])
end

local kExamples = { range = "range(0, 0.3)", log = "log(1e-4, 1e-2)", int = "int(2, 8)", normal = "normal(0, 0.02)",
  span = "log(1e-4, 1e-2)" }

-- What a file of a sweep has instead of t.space.NAME, or nil.
function M.in_file(name)
  local ours = kLists[name] and "choice { 1, 2, 3 }" or kExamples[kCalled[name]]
  return ours and ("write  t.space.%s"):format(ours) or nil
end

-- How a sweep writes several values, or a space as other systems call it, for a key of this spec; nil for other text.
function M.of_value(spec, value)
  local name, body = M.call(value)
  if name then return M.spelling(spec, name, body) end
  local parts = literal.split((value:gsub("[%s,]+$", "")))
  if #parts < 2 or spec.type == "list" or value:find "[%(%[{]" or not all_fit(spec, parts) then return nil end
  return table.concat(parts, ",")
end

return M
