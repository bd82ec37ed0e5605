-- Calls of a function on plain numbers, whose result must be what the recorded operations give: Lua does other things with a
-- symbol than with the number that it stands for where no operation is called, as in list[x] and type(x).
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"

local M = {}

local kNumbers = { 0, 1, -1, 1 / 0, 0 / 0, 0.5, 2, -3, -1 / 0 }   -- each is given to all inputs at once
local kMixtures = { 1, 2, 4, 5 }

local function first_nan(a, b) return a ~= a and a or b ~= b and b or nil end

-- Every operation on numbers, where a matrix is one number. Both sides use these, so that erf may be any function.
local kOperations = {
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end,
  div = function(a, b) return a / b end, pow = function(a, b) return a ^ b end, neg = function(a) return -a end,
  abs = math.abs, floor = math.floor, sqrt = math.sqrt, exp = math.exp, log = math.log, tanh = math.tanh, erf = math.atan,
  sign = function(a) return a > 0 and 1 or a < 0 and -1 or a end,
  rsqrt = function(a) return 1 / math.sqrt(a) end, sigmoid = function(a) return 1 / (1 + math.exp(-a)) end,
  min = function(a, b) return first_nan(a, b) or (a < b and a or b) end, max = function(a, b) return first_nan(a, b) or (a > b and a or b) end,
  fma = function(a, b, c) return a * b + c end,
  clamp = function(a, low, high) return a < low and low or a > high and high or a end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end, gt = function(a, b) return a > b end,
  ge = function(a, b) return a >= b end, eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  mm = function(a, b) return a * b end, take = function(a) return a end, argsort = function() return 0 end,
  qr = function(a) return a < 0 and -1 or 1 end, eigh_vectors = function() return 1 end,
}
kOperations["and"] = function(a, b) return a and b end
kOperations["or"] = function(a, b) return a or b end
kOperations["not"] = function(a) return not a end
local function chosen(condition, a, b)
  if condition then return a end
  return b
end
kOperations.where, kOperations.every = chosen, chosen
for _, op in ipairs { "sum", "mean", "largest", "smallest", "transpose", "eigh_values" } do kOperations[op] = kOperations.take end

-- Returns the result of an operation on plain numbers and conditions.
function M.operate(op, operands) return kOperations[op](operands[1], operands[2], operands[3]) end

-- Returns the value of every recorded node for these inputs.
local function values_of(nodes, inputs)
  local values = {}
  local function at(argument) return type(argument) == "number" and values[argument + 1] end   -- the last one may be an axis
  for i, node in ipairs(nodes) do
    local op, a = node[1], node[2]
    if op == "input" then values[i] = inputs[a + 1]
    elseif op == "number" then values[i] = tonumber(a)
    else values[i] = kOperations[op](at(a), at(node[3]), at(node[4])) end
  end
  return values
end

local function are_equal(a, b) return a == b or a ~= a and b ~= b end

local function text_of(x) return x ~= x and "nan" or schema.literal(x) end

local function refuse(spec, inputs, name, wanted, got)
  local given = {}
  for i, input in ipairs(spec.inputs) do given[i] = ("%s = %s"):format(input.name, text_of(inputs[i])) end
  local file, line = place_of.of(spec.session, spec.fn, "return")
  place_of.refuse(spec.session, file, line, "", ("the function gives another %s for plain numbers: with %s the recorded operations give %s, the function %s"):format(
    name, table.concat(given, ", "), text_of(wanted), text_of(got)),
    "Lua sees a symbol, not its number: list[x] finds nothing and type(x) is another; write  t.where(condition, a, b)")
end

local function check_at(spec, recorded, inputs)
  local outputs = recording.on_numbers(spec, inputs, M.operate)
  if not outputs then return end
  local values = values_of(recorded.nodes, inputs)
  for name, value in pairs(recorded.outputs) do
    local wanted = values[value.node + 1]
    if not are_equal(wanted, outputs[name]) then refuse(spec, inputs, name, wanted, outputs[name]) end
  end
end

local function check_points(spec, recorded)
  for i = 1, #kNumbers do
    local inputs = {}
    for k = 1, #spec.inputs do inputs[k] = kNumbers[i] end
    check_at(spec, recorded, inputs)
  end
  for _, step in ipairs(kMixtures) do
    local inputs = {}
    for k = 1, #spec.inputs do inputs[k] = kNumbers[(k * step + step) % #kNumbers + 1] end
    check_at(spec, recorded, inputs)
  end
end

-- Ends the recipe if the function gives other numbers than what was recorded of it. Numbers have the methods and fields of symbols
-- meanwhile.
function M.check(spec, recorded)
  local fields, before = {}, debug.getmetatable(0)
  for _, input in ipairs(spec.inputs) do
    for key, value in pairs(input.fields or {}) do fields[key] = value end
  end
  debug.setmetatable(0, { __index = function(_, key) return recording.methods[key] or fields[key] end })
  local ok, why = pcall(check_points, spec, recorded)
  debug.setmetatable(0, before)
  if not ok then error(why, 0) end
end

return M
