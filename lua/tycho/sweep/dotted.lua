-- space.optimizer.lr=log(1e-4,1e-2) and pins.optimizer.lr=3e-4: arguments of a sweep whose names are keys of the recipe, dots and
-- all, and spaces written as for a recipe.
local arguments_of = require "tycho.sweep.arguments"
local overrides = require "tycho.overrides"

local M = {}

local kNames = { space = true, pins = true }
local kOfSpaces = { values = true, low = true, high = true, mean = true, std = true, keys = true, cases = true, when = true }

-- How many parts from the second on name a key of the recipe: those before a key of a space, such as low.
local function num_parts_of_key(parts)
  for i = 3, #parts do
    if kOfSpaces[parts[i].key] then return i - 2 end
  end
  return #parts - 1
end

local function joined(parts)
  if #parts < 3 then return parts end
  local count, words = num_parts_of_key(parts), {}
  for i = 2, 1 + count do words[#words + 1] = tostring(parts[i].key) end
  local first, last = parts[2], parts[1 + count]
  local out = { parts[1], { key = table.concat(words, "."), col = first.col, len = last.col + last.len - first.col } }
  for i = 2 + count, #parts do out[#out + 1] = parts[i] end
  return out
end

-- The argument with the parts of its key joined; others as they are.
function M.read(one)
  local override = one.text and not one.override and overrides.parse(one.text)
  if not override or not override.parts[1] or not kNames[override.parts[1].key] or #override.parts < 2 then return one end
  override.parts = joined(override.parts)
  if override.parts[1].key == "space" and #override.parts == 2 and override.op == "=" then
    override.value = arguments_of.as_component(override.parts[2].key, override.value)
  end
  local first, last = override.parts[1], override.parts[#override.parts]
  override.site = { argument = one.argument, text = one.text, key = { col = first.col, len = last.col + last.len - first.col } }
  if override.value_col then
    override.site.value = { col = override.value_col, len = math.max(1, #one.text - override.value_col + 1) }
  end
  local out = {}
  for key, value in pairs(one) do out[key] = value end
  out.override = override
  return out
end

return M
