-- Writes a resolved recipe as a recipe that can be run again, and histories as plain data.
local history = require "tycho.history"
local lexer = require "tycho.lexer"
local schema = require "tycho.schema"
local values = require "tycho.values"

local M = {}

local write_value

-- Plain data on one line, any text as a key.
local function write_data(value)
  if type(value) ~= "table" then return schema.literal(value) end
  local out, size = {}, #value
  for _, key in ipairs(schema.sorted_keys(value)) do
    out[#out + 1] = (size > 0 and "" or ("[%s] = "):format(schema.literal(key))) .. write_data(value[key])
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

-- True when a function is among the values of a tree.
local function has_function(value)
  if type(value) ~= "table" then return false end
  if value.at and value.hash then return true end
  for _, item in pairs(value) do
    if has_function(item) then return true end
  end
  return false
end

local function write_table(fields, tree, indent, path)
  local out = {}
  for _, field in ipairs(fields) do
    out[#out + 1] = ("%s  %s = %s,\n"):format(indent, lexer.key(field.name),
      write_value(field, tree[field.name], indent .. "  ", lexer.path(path, field.name)))
  end
  return "{\n" .. table.concat(out) .. indent .. "}"
end

local function write_map(spec, map, indent, path)
  local out = {}
  for _, key in ipairs(schema.sorted_keys(map)) do
    local value = write_value(spec.item, map[key], indent .. "  ", ("%s[%s]"):format(path, schema.literal(key)))
    out[#out + 1] = ("%s  [%s] = %s,\n"):format(indent, schema.literal(key), value)
  end
  return #out == 0 and "{}" or "{\n" .. table.concat(out) .. indent .. "}"
end

-- One value of the tree as Lua, by its schema type; `path` is where it stands in the origin: "from.scheduler.fn".
function write_value(field, value, indent, path)
  if value == values.null then return "t.null" end
  if field.type == "function" or field.defines and type(value) == "table" then return path end
  if field.type == "data" then return write_data(value) end
  if field.type == "component" then
    local fields = field.kinds[value.kind].fields
    return ("t.%s.%s %s"):format(field.namespace, value.kind, write_table(fields, value, indent, path))
  end
  if field.type == "struct" then return write_table(field.fields, value, indent, path) end
  if field.type == "map" then return write_map(field, value, indent, path) end
  if field.type == "list" then
    local out = {}
    for i, item in ipairs(value) do out[i] = write_value(field.item, item, indent, ("%s[%d]"):format(path, i)) end
    return "{ " .. table.concat(out, ", ") .. " }"
  end
  return schema.literal(value)
end

-- tree: recipe.tree's. The text sets every key, so that later defaults cannot change the run. origin: the lines that make
-- `from`, where functions are read from.
function M.recipe(root, tree, name, origin)
  local out = { ("-- The recipe \"%s\" as resolved: every key is set. It can be run again.\n"):format(name),
    'local t = require "tycho"\n', ("local r = t.recipe %s\n\n"):format(schema.literal(name)) }
  if has_function(tree) then table.insert(out, 3, origin()) end
  for _, field in ipairs(root.fields) do
    out[#out + 1] = ("%s = %s\n"):format(lexer.path("r", field.name),
      write_value(field, tree[field.name], "", lexer.path("from", field.name)))
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
