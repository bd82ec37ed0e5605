-- Writes a resolved recipe as a recipe that can be run again, and histories as plain data.
local history = require "tycho.history"
local schema = require "tycho.schema"
local values = require "tycho.values"

local M = {}

local write_value

local function write_table(fields, tree, indent)
  local out = {}
  for _, field in ipairs(fields) do
    out[#out + 1] = ("%s  %s = %s,\n"):format(indent, field.name, write_value(field, tree[field.name], indent .. "  "))
  end
  return "{\n" .. table.concat(out) .. indent .. "}"
end

local function write_map(spec, map, indent)
  local out = {}
  for _, key in ipairs(schema.sorted_keys(map)) do
    local value = write_value(spec.item, map[key], indent .. "  ")
    out[#out + 1] = ("%s  [%s] = %s,\n"):format(indent, schema.literal(key), value)
  end
  return #out == 0 and "{}" or "{\n" .. table.concat(out) .. indent .. "}"
end

-- One value of the tree as Lua, by its schema type.
function write_value(field, value, indent)
  if value == values.null then return "t.null" end
  if field.type == "component" then
    local fields = field.kinds[value.kind].fields
    return ("t.%s.%s %s"):format(field.namespace, value.kind, write_table(fields, value, indent))
  end
  if field.type == "struct" then return write_table(field.fields, value, indent) end
  if field.type == "map" then return write_map(field, value, indent) end
  if field.type == "list" then
    local out = {}
    for i, item in ipairs(value) do out[i] = write_value(field.item, item, indent) end
    return "{ " .. table.concat(out, ", ") .. " }"
  end
  return schema.literal(value)
end

-- tree: recipe.tree's. The text sets every key, so that later defaults cannot change the run.
function M.recipe(root, tree, name)
  local out = { ("-- The recipe \"%s\" as resolved: every key is set. It can be run again.\n"):format(name),
    'local t = require "tycho"\n', ("local r = t.recipe %s\n\n"):format(schema.literal(name)) }
  for _, field in ipairs(root.fields) do
    out[#out + 1] = ("r.%s = %s\n"):format(field.name, write_value(field, tree[field.name], ""))
  end
  out[#out + 1] = "return r\n"
  return table.concat(out)
end

-- path -> list of { by, at, value, shadowed, changed, text }.
function M.history(histories)
  local out = {}
  for path, list in pairs(histories) do
    local entries = {}
    for i, entry in ipairs(list) do
      entries[i] = { by = entry.by, at = entry.at, value = entry.value, shadowed = entry.shadowed,
        changed = entry.changed, text = entry.text }
    end
    out[path] = entries
  end
  return out
end

-- The entry of a plain history that holds now.
M.latest = history.latest

return M
