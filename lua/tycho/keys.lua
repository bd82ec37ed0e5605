-- Every key of a recipe as a page of Markdown: docs/keys.md, which `tycho config --markdown` writes.
local lexer = require "tycho.lexer"
local schema = require "tycho.schema"
local session_of = require "tycho.session"
local values = require "tycho.values"

local M = {}

local kHead = [[
# Keys of a recipe

Written by `tycho config --markdown` from the declarations that check recipes; do not edit. How to write keys, durations
and sizes: [recipes](recipes.md). At the prompt, `?r.optimizer.lr` shows the same.
]]

-- Escapes what would begin a column or a tag.
local function cell(text) return (text:gsub("|", "\\|"):gsub("<", "&lt;"):gsub("\n", " ")) end

local function default_text(field)
  if field.required then return "required" end
  if field.type == "component" then
    local kind = type(field.default) == "table" and field.default.kind
    return kind and ("`t.%s.%s {}`"):format(field.namespace, kind) or "none"
  end
  if field.type == "struct" or field.type == "map" then return "" end
  if field.default == nil or field.default == values.null then return "none" end
  return "`" .. schema.literal(field.default) .. "`"
end

local function what(field)
  local text = schema.describe_shortly(field)
  if field.type == "map" or field.type == "list" and field.item.type == "struct" then text = "table, see below" end
  return cell(text)
end

local function add_table(out, fields)
  if #fields == 0 then return end
  out[#out + 1] = "| key | what | default | meaning |\n|---|---|---|---|"
  for _, field in ipairs(fields) do
    local in_lua = lexer.is_name(field.name) and "" or (" In a recipe: `%s = ...`."):format(lexer.key(field.name))
    out[#out + 1] = ("| `%s` | %s | %s | %s%s |"):format(field.name, what(field), cell(default_text(field)),
      cell(field.help or ""), in_lua)
  end
  out[#out + 1] = ""
end

local function same(a, b)
  return b and a.type == b.type and a.help == b.help and default_text(a) == default_text(b) and what(a) == what(b)
end

-- The fields that every kind of a component has alike, and a set of their names.
local function shared_fields(kinds, names)
  local list, set = {}, {}
  for _, field in ipairs(#names > 1 and kinds[names[1]].fields or {}) do
    local in_all = true
    for _, name in ipairs(names) do in_all = in_all and same(field, schema.field(kinds[name].fields, field.name)) end
    if in_all then list[#list + 1], set[field.name] = field, true end
  end
  return list, set
end

local add_section   -- of a key with parts, below

local function add_parts(out, fields, path, depth)
  for _, field in ipairs(fields) do add_section(out, field, schema.join(path, field.name), depth) end
end

local function add_kinds(out, component, path, depth)
  local names = schema.sorted_keys(component.kinds)
  local shared, is_shared = shared_fields(component.kinds, names)
  if #shared > 0 then out[#out + 1] = "Every kind has:\n" end
  add_table(out, shared)
  add_parts(out, shared, path, depth + 1)
  for _, name in ipairs(names) do
    local kind, own = component.kinds[name], {}
    for _, field in ipairs(kind.fields) do
      if not is_shared[field.name] then own[#own + 1] = field end
    end
    out[#out + 1] = ("%s t.%s.%s\n"):format(("#"):rep(depth), component.namespace, name)
    if kind.help then out[#out + 1] = kind.help .. "\n" end
    if kind.presets then
      out[#out + 1] = ("Presets, for `t.%s.%s { preset = ... }`: `%s`.\n"):format(component.namespace, name,
        table.concat(kind.presets, "`, `"))
    end
    add_table(out, own)
    add_parts(out, own, path, depth + 1)
  end
end

function add_section(out, field, path, depth)
  local inner, suffix = field, ""
  if field.type == "list" or field.type == "map" then
    inner, suffix = field.item, field.type == "map" and ".NAME" or "[i]"
  end
  if inner.type ~= "struct" and inner.type ~= "component" then return end
  out[#out + 1] = ("%s %s%s\n"):format(("#"):rep(depth), path, suffix)
  out[#out + 1] = (field.help or "") .. "\n"
  if inner.type == "component" then
    add_kinds(out, inner, path .. suffix, depth + 1)
  else
    add_table(out, inner.fields)
    add_parts(out, inner.fields, path .. suffix, depth + 1)
  end
end

-- Door for C++: { text }, with the kinds of request.recipes; or what is wrong with one of them.
function M.main(request)
  local root, wrong = session_of.schema_of(request.recipes)
  if wrong then return { problems = 1, report = wrong } end
  local out = { kHead, "## The run\n" }
  add_table(out, root.fields)
  add_parts(out, root.fields, "", 2)
  return { problems = 0, text = (table.concat(out, "\n"):gsub("\n\n\n+", "\n\n"):gsub("%s*$", "\n")) }
end

return M
