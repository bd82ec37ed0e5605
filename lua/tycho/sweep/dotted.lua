-- space.optimizer.lr=log(1e-4,1e-2) and pins.optimizer.lr=3e-4: arguments of a sweep whose names are keys of the recipe, dots and
-- all, and spaces written as for a recipe.
local arguments_of = require "tycho.sweep.arguments"
local native = require "tycho.native"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"

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

-- A key of the recipe where a key of the sweep is expected, as optimizer.lr=1e-3,1e-2: what is wrong, or nil.
local function of_recipe(one, override)
  local first = override.parts[1].key
  local is_ours = schema.field(native.sweep_schema().fields, tostring(first)) or not schema.field(native.schema.fields, tostring(first))
  if is_ours or override.op ~= "=" then return nil end
  local below = arguments_of.is_space(overrides.path(override.parts), override.value) and "space" or "pins"
  return { argument = one.argument, text = one.text, col = 1, len = override.value_col - 2,
    message = ("%s is a key of the recipe, and this changes a sweep"):format(overrides.path(override.parts)),
    hint = "write  " .. overrides.shell_word(("%s.%s"):format(below, one.text)) }
end

-- The argument with the parts of its key joined; others as they are. Nil and a problem for one that cannot be meant so.
function M.read(one)
  local override = one.text and not one.override and overrides.parse(one.text)
  if not override or not override.parts[1] then return one end
  local problem = of_recipe(one, override)
  if problem then return nil, problem end
  if not kNames[override.parts[1].key] or #override.parts < 2 then return one end
  override.parts = joined(override.parts)
  if override.parts[1].key == "space" and #override.parts == 2 and override.op == "=" then
    local value, hint = arguments_of.as_component(override.parts[2].key, override.value)
    if not value then
      return nil, { argument = one.argument, text = one.text, col = override.value_col, len = #override.value,
        message = ("expected a space of values, got %s"):format(override.value), hint = hint }
    end
    override.value = value
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
