-- Formulas that differ in their numbers alone. A function that was traced for one matrix is only called for the next one. If it does
-- the same operations, its expression is the known one with the new numbers.
--
-- The known expression is simplified. Simplifying other numbers could give another expression: x * 1 becomes x. So numbers that the
-- rules look at (0, 1, equal ones, infinities, NaN) are not exchanged, and such a function is traced again.
local native = require "tycho.native"
local recording = require "tycho.maths.recording"

local M = {}

local function number_key(x) return ("%.17g"):format(x) end

-- The numbers of nodes, in order. nil if a rule of simplification may look at one of them, or two are equal. numbers: replace those of
-- the nodes, by node.
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

-- The template that renumbered() needs, from the result of trace(). nil if numbers were computed with each other, or the function
-- compares.
function M.template(made)
  for _, done in ipairs(made.recorded.done) do
    if done.is_comparison then return nil end
  end
  local traced, kept = plain_numbers(made.recorded.nodes), plain_numbers(made.expression.nodes)
  if not traced or not kept or #traced ~= #kept then return nil end
  for i, x in ipairs(traced) do
    if kept[i] ~= x then return nil end
  end
  return { recorded = made.recorded, expression = made.expression, shape = M.shape(made.expression) }
end

-- Calls spec.run. Returns the template's expression with the numbers of this call, or nil if the call does other operations.
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

-- A text of everything in an expression but its numbers.
function M.shape(expression)
  local parts = {}
  for i, node in ipairs(expression.nodes) do
    parts[i] = node[1] == "number" and "number" or table.concat(node, " ")
  end
  for _, output in ipairs(expression.outputs) do parts[#parts + 1] = output.name .. " " .. output.node end
  return table.concat(parts, "\n")
end

-- A text that two expressions of the same inputs share if they are equal. shape: that of the expression.
function M.key(expression, shape)
  local parts = { shape }
  for _, node in ipairs(expression.nodes) do
    if node[1] == "number" then parts[#parts + 1] = type(node[2]) == "number" and number_key(node[2]) or node[2] end
  end
  return table.concat(parts, "\n")
end

return M
