-- t.act.define: activations of feed-forwards that a recipe writes as functions of one number.
local functions = require "tycho.functions"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local trace = require "tycho.maths.trace"

local M = {}

local kExample = "t.act.define(function(x) return x * t.sigmoid(x) end)"

-- t.act.define(function(x) ... end): what `activation` may be beside the name of a built-in one.
function M.define(session, given)
  if type(given) ~= "function" then session:refuse("define", "t.act.define expects a function of one number, such as  " .. kExample) end
  local ref, message = functions.keep(given)
  if not ref then session:refuse("define", message) end
  local traced = trace { session = session, fn = given, inputs = { { name = "x" } }, result = "y",
    nothing = "the function returns nothing: an activation is a number for each x",
    run = function(symbols) return { y = recording.single(given(symbols.x)) } end }
  if traced.recorded.outputs.y.number then
    local file, line = place_of.of(session, given, "return")
    place_of.refuse(session, file, line, "return", "the function returns the same number for every x: write it with x")
  end
  return functions.with_expression(ref, traced.expression)
end

return M
