-- Calls of a function on plain numbers, whose result must be what the recorded operations give: Lua does other things with a
-- symbol than with the number that it stands for where no operation is called, as in list[x] and type(x).
local numbers = require "tycho.maths.numbers"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"

local M = {}

local kNumbers = { 0, 1, -1, 1 / 0, 0 / 0, 0.5, 2, -3, -1 / 0 }   -- each is given to all inputs at once
local kMixtures = { 1, 2, 4, 5 }

-- Returns the value of every recorded node for these inputs.
local function values_of(nodes, inputs)
  local values = {}
  local function at(argument) return type(argument) == "number" and values[argument + 1] end   -- the last one may be an axis
  for i, node in ipairs(nodes) do
    local op, a = node[1], node[2]
    if op == "input" then values[i] = inputs[a + 1]
    elseif op == "number" then values[i] = tonumber(a)
    else values[i] = numbers[op](at(a), at(node[3]), at(node[4])) end
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
  local outputs = recording.on_numbers(spec, inputs)
  if not outputs then return end
  local values = values_of(recorded.nodes, inputs)
  for name, value in pairs(recorded.outputs) do
    local wanted = values[value.node + 1]
    if not are_equal(wanted, outputs[name]) then refuse(spec, inputs, name, wanted, outputs[name]) end
  end
end

-- Ends the recipe if the function gives other numbers than what was recorded of it.
function M.check(spec, recorded)
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

return M
