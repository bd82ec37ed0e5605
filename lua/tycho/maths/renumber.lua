-- Formulas that differ in their numbers alone: a function that was traced for one layer is called once for the next, and the
-- expression is the known one with other numbers, unless its simplification might have been another.
local native = require "tycho.native"
local recording = require "tycho.maths.recording"

local M = {}

local function number_key(x) return ("%.17g"):format(x) end

-- The numbers of nodes, in order, if no rule of simplification is about one of them and all are different; else nil.
local function plain_numbers(nodes, numbers)
  local list, seen = {}, {}
  for i, node in ipairs(nodes) do
    if node[1] == "number" then
      local x = numbers and numbers[i - 1] or node[2]
      if type(x) ~= "number" or x - x ~= 0 or x == 0 or x == 1 or seen[x] then return nil end
      list[#list + 1], seen[x] = x, true
    end
  end
  return list
end

-- What renumbered() makes expressions of, from what trace() returned; nil where numbers were computed with each other, or
-- comparisons were made.
function M.template(made)
  for _, done in ipairs(made.recorded.done) do
    if done.is_comparison then return nil end
  end
  local traced, kept = plain_numbers(made.recorded.nodes), plain_numbers(made.expression.nodes)
  if not traced or not kept or #traced ~= #kept then return nil end
  for i, x in ipairs(traced) do
    if kept[i] ~= x then return nil end
  end
  return { recorded = made.recorded, expression = made.expression }
end

-- The expression of a call of spec.run with other numbers than the template's, or nil.
function M.renumbered(spec, template)
  local found = recording.renumbered(spec, template.recorded)
  local numbers = found and plain_numbers(template.recorded.nodes, found)
  if not numbers then return nil end
  local nodes, at = {}, 0
  for i, node in ipairs(template.expression.nodes) do
    nodes[i] = node
    if node[1] == "number" then
      at = at + 1
      nodes[i] = { "number", numbers[at] }
    end
  end
  local expression = {}
  for key, value in pairs(template.expression) do expression[key] = value end
  expression.nodes = native.array(nodes)
  return expression
end

-- A text that two expressions of the same inputs share if they are equal.
function M.key(expression)
  local parts = {}
  for i, node in ipairs(expression.nodes) do
    local words = {}
    for k, word in ipairs(node) do words[k] = type(word) == "number" and number_key(word) or tostring(word) end
    parts[i] = table.concat(words, " ")
  end
  for _, output in ipairs(expression.outputs) do parts[#parts + 1] = output.name .. " " .. output.node end
  return table.concat(parts, "\n")
end

return M
