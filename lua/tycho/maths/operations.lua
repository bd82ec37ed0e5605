-- The operations of traced functions: t.where, t.sqrt and their like, methods of symbols, and what math.* does with symbols.
local matrices = require "tycho.maths.matrices"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"
local symbol = require "tycho.maths.symbol"

local M = {}

local function operation(op, count)
  return function(...)
    if select("#", ...) ~= count then
      recording.refuse(op, ("t.%s expects %d value%s, got %d"):format(op, count, count == 1 and "" or "s", select("#", ...)))
    end
    return recording.operate(op, { n = count, ... })
  end
end

-- t.min(a, b, ...): as many values as there are.
local function folded(op)
  return function(first, ...)
    if select("#", ...) == 0 then recording.refuse(op, ("t.%s expects two values or more"):format(op)) end
    local result = first
    for i = 1, select("#", ...) do result = recording.operate(op, { n = 2, result, (select(i, ...)) }) end
    return result
  end
end

local clamp = operation("clamp", 3)

local function clamped(...)
  local _, low, high = ...
  if type(low) == "number" and type(high) == "number" and low > high and not recording.is_on_numbers() then
    recording.refuse("clamp", ("t.clamp(x, low, high) expects low <= high, got %s and %s"):format(schema.literal(low), schema.literal(high)))
  end
  return clamp(...)
end

local kUnary = { "abs", "sign", "floor", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "erf" }

M.functions = {
  min = folded "min", max = folded "max", pow = operation("pow", 2), fma = operation("fma", 3), clamp = clamped,
  where = operation("where", 3), both = operation("and", 2), either = operation("or", 2), negate = operation("not", 1),
}
for _, op in ipairs(kUnary) do M.functions[op] = operation(op, 1) end
for name, fn in pairs(matrices.functions) do M.functions[name] = fn end

local methods = {}
for _, op in ipairs { "lt", "le", "gt", "ge", "eq", "ne" } do
  methods[op] = function(x, y) return recording.operate(op, { n = 2, x, y }) end
end
for _, op in ipairs { "sum", "mean", "largest", "smallest" } do
  methods[op] = function(x, axis)
    if axis ~= "row" and axis ~= "column" and axis ~= "matrix" and axis ~= "tensor" then
      recording.refuse(op, ('x:%s expects "row", "column", "matrix" or "tensor"'):format(op))
    end
    return recording.operate(op, { n = 1, x }, axis)
  end
end

recording.methods = methods
symbol.on.operate = function(op, ...) return recording.operate(op, { n = select("#", ...), ... }) end
symbol.on.refuse = recording.refuse
symbol.on.field = function(x, key)
  if methods[key] then return methods[key] end
  local value = recording.field(x, key)
  if value ~= nil then return value end
  local names, fields = schema.sorted_keys(methods), recording.field_names()
  local near = schema.did_you_mean(tostring(key), names)
  for _, name in ipairs(fields) do near = near or schema.did_you_mean(tostring(key), { name:match "[^.]*$" }) and name end
  local why = M.functions[key] and ("write  t.%s(x)"):format(key) or near and ("did you mean  %s?"):format(near)
    or ("symbols have the methods %s%s"):format(table.concat(names, ", "), #fields > 0 and "; there are  " .. table.concat(fields, ", ") or "")
  recording.refuse(tostring(key), ("a symbol has no field or method %s"):format(tostring(key)), why)
end

local function any_symbol(...)
  for i = 1, select("#", ...) do
    if symbol.is((select(i, ...))) then return true end
  end
  return false
end

-- tonumber and the functions of math for recipes: those that have an operation accept symbols, the others say so.
function M.accepting(name, fn)
  local traced = M.functions[name:match "^math%.(.*)$"]
  return function(...)
    if not any_symbol(...) and not (traced and recording.is_on_numbers()) then return fn(...) end
    if traced then return traced(...) end
    recording.refuse(name:match "[%w_]*$", name .. " cannot be traced: a symbol stands for numbers that the run will have",
      "operations on symbols are t.where, t.min, t.max, t.abs, t.sqrt, ...: docs/maths.md")
  end
end

return M
