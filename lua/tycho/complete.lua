-- Completions of a partial override: keys one level at a time, then values by their type.
local native = require "tycho.native"
local node = require "tycho.node"
local schema = require "tycho.schema"
local session_of = require "tycho.session"

local M = {}

-- The specs that a dotted path can mean; components have one per kind. kind_at(path): the kind of the component there, nil where it
-- is not known.
local function specs_at(root, path, kind_at)
  local specs, at = { root }, ""
  for part in path:gmatch("[^%.]+") do
    local below = {}
    for _, spec in ipairs(specs) do
      for _, choice in ipairs(M.choices(spec, at, kind_at)) do
        local found = choice.fields and schema.field(choice.fields, part) or choice.type == "map" and choice.item
          or choice.type == "list" and tonumber(part) and choice.item
        if found then below[#below + 1] = found end
      end
    end
    specs, at = below, schema.join(at, part)
  end
  return specs
end

-- The kinds that the component at a path can be, in order; a spec of another type alone.
function M.choices(spec, path, kind_at)
  if spec.type ~= "component" then return { spec } end
  local chosen = kind_at and spec.kinds[kind_at(path)]
  if chosen then return { chosen } end
  local out = {}
  for i, kind in ipairs(schema.sorted_keys(spec.kinds)) do out[i] = spec.kinds[kind] end
  return out
end

local function add_new(out, seen, text)
  if not seen[text] then out[#out + 1], seen[text] = text, true end
end

local function keys_below(root, path, kind_at)
  local out, seen = {}, {}
  for _, spec in ipairs(specs_at(root, path, kind_at)) do
    for _, choice in ipairs(M.choices(spec, path, kind_at)) do
      for _, field in ipairs(choice.fields or {}) do
        if not seen[field.name] then out[#out + 1], seen[field.name] = field, true end
      end
    end
  end
  return out
end

-- How a key goes on: "." for groups, "=" for values, both for components.
local function endings(field, unset)
  if field.type == "struct" then return { "." } end
  if unset then return field.type == "component" and { "", "." } or { "" } end
  if field.type == "component" or field.type == "map" then return { "=", "." } end
  return { "=" }
end

local function keys(root, typed, prefix, kind_at)
  local parent, stem = typed:match("^(.*%.)([^%.]*)$")
  parent, stem = parent or "", stem or typed
  local out = {}
  for _, field in ipairs(keys_below(root, parent:gsub("%.$", ""), kind_at)) do
    if field.name:sub(1, #stem) == stem and (prefix ~= "+" or field.type == "map" or field.type == "struct") then
      for _, ending in ipairs(endings(field, prefix == "~")) do out[#out + 1] = prefix .. parent .. field.name .. ending end
    end
  end
  return out
end

local function values_of(spec)
  if spec.type == "boolean" then return { "true", "false" } end
  if spec.type == "enum" then return spec.values end
  if spec.type == "component" then return schema.sorted_keys(spec.kinds) end
  return {}
end

local function values(root, path, head, typed, kind_at)
  local out, seen = {}, {}
  for _, spec in ipairs(specs_at(root, path, kind_at)) do
    for _, value in ipairs(values_of(spec)) do
      if value:sub(1, #typed) == typed then add_new(out, seen, head .. value) end
    end
    if spec.optional and ("null"):sub(1, #typed) == typed then add_new(out, seen, head .. "null") end
  end
  return out
end

-- Whole words that the last word can become. kind_at: as for specs_at, or nil.
function M.candidates(root, word, kind_at)
  local head, path, typed = word:match("^(%+?([%w_%.]+)=)(.*)$")
  if head then return values(root, path, head, typed, kind_at) end
  local prefix = word:match("^[~%+]") or ""
  return keys(root, word:sub(#prefix + 1), prefix, kind_at)
end

-- The kinds that a command's recipe and its arguments choose, the arguments last.
local function kinds_of(words, made)
  return function(path)
    for i = #words - 1, 1, -1 do
      local key, kind = words[i]:match "^%+?([%w_%.]+)=([%a_][%w_]*)"
      if key == path then return kind end
    end
    local component = made and select(2, node.field_at(made.root, path))
    return component and component.kind
  end
end

-- The schema that holds for a command, with the kinds that its recipe defines, and the recipe as far as it came; nil for none.
local function schema_of(words)
  for i = 1, #words - 1 do
    if words[i]:find "%.lua$" and native.read_file(words[i]) then
      local root, _, made = session_of.schema_of { words[i] }
      return root, made
    end
  end
  return native.schema
end

-- Entry point for C++: request.words of a command, the last of which is completed.
function M.main(request)
  local words = request.words
  local root, made = schema_of(words)
  return { candidates = native.array(M.candidates(root, words[#words], kinds_of(words, made))) }
end

return M
