-- t.act.define: activations of feed-forwards that a recipe writes as functions of one number.
local functions = require "tycho.functions"
local recording = require "tycho.maths.recording"
local trace = require "tycho.maths.trace"

local M = {}

local kExample = "t.act.define(function(x) return x * t.sigmoid(x) end)"

-- t.act.define(function(x) ... end): what `activation` may be beside the name of a built-in one.
function M.define(session, given)
  if type(given) ~= "function" then session:refuse("define", "t.act.define expects a function of one number, such as  " .. kExample) end
  local ref, message = functions.keep(given)
  if not ref then session:refuse("define", message) end
  local traced = trace { session = session, fn = given, inputs = { { name = "x" } }, run = function(symbols)
    local value = given(symbols.x)
    if type(value) == "nil" then error("the function returns nothing: an activation is a number for each x", 0) end
    if type(value) == "number" and not recording.is_on_numbers() then error("the function returns the same number for every x: write it with x", 0) end
    return { y = value }
  end }
  return functions.with_expression(ref, traced.expression)
end

return M
