-- Completions of a partial override: keys one level at a time, then values by their type.
local native = require "tycho.native"
local schema = require "tycho.schema"
local session_of = require "tycho.session"

local M = {}

-- The specs that a dotted path can mean; components have one per kind.
local function specs_at(root, path)
  local specs = { root }
  for part in path:gmatch("[^%.]+") do
    local below = {}
    for _, spec in ipairs(specs) do
      for _, choice in ipairs(spec.type == "component" and M.kinds(spec) or { spec }) do
        local found = choice.fields and schema.field(choice.fields, part) or choice.type == "map" and choice.item
          or choice.type == "list" and tonumber(part) and choice.item
        if found then below[#below + 1] = found end
      end
    end
    specs = below
  end
  return specs
end

-- The kinds of a component, in order.
function M.kinds(spec)
  local out = {}
  for i, kind in ipairs(schema.sorted_keys(spec.kinds)) do out[i] = spec.kinds[kind] end
  return out
end

local function add_new(out, seen, text)
  if not seen[text] then out[#out + 1], seen[text] = text, true end
end

local function keys_below(specs)
  local out, seen = {}, {}
  for _, spec in ipairs(specs) do
    for _, choice in ipairs(spec.type == "component" and M.kinds(spec) or { spec }) do
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

local function keys(root, typed, prefix)
  local parent, stem = typed:match("^(.*%.)([^%.]*)$")
  parent, stem = parent or "", stem or typed
  local out = {}
  for _, field in ipairs(keys_below(specs_at(root, parent))) do
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

local function values(root, path, head, typed)
  local out, seen = {}, {}
  for _, spec in ipairs(specs_at(root, path)) do
    for _, value in ipairs(values_of(spec)) do
      if value:sub(1, #typed) == typed then add_new(out, seen, head .. value) end
    end
    if spec.optional and ("null"):sub(1, #typed) == typed then add_new(out, seen, head .. "null") end
  end
  return out
end

-- Whole words that the last word can become.
function M.candidates(root, word)
  local head, path, typed = word:match("^(%+?([%w_%.]+)=)(.*)$")
  if head then return values(root, path, head, typed) end
  local prefix = word:match("^[~%+]") or ""
  return keys(root, word:sub(#prefix + 1), prefix)
end

-- The schema that holds for a command: with the kinds that its recipe defines.
local function schema_of(words)
  for i = 1, #words - 1 do
    if words[i]:find "%.lua$" and native.read_file(words[i]) then return (session_of.schema_of { words[i] }) end
  end
  return native.schema
end

-- Entry point for C++: request.words of a command, the last of which is completed.
function M.main(request)
  local words = request.words
  return { candidates = native.array(M.candidates(schema_of(words), words[#words])) }
end

return M
