-- What `tycho config` prints: every key with value, unit, help, and who set it.
local native = require "tycho.native"
local schema = require "tycho.schema"

local M = {}

local function latest(list)
  for i = #(list or {}), 1, -1 do
    if not list[i].shadowed then return list[i] end
  end
end

local function at_path(tree, path)
  for part in path:gmatch("[^%.]+") do
    if type(tree) ~= "table" then return nil end
    tree = tree[tonumber(part) or part]
  end
  return tree
end

local function chosen(tree, path, kind)
  if not kind or not tree then return true end
  local component = at_path(tree, path:match("^(.*)%.[^.]*$"))
  return type(component) == "table" and component.kind == kind
end

local function row_of(path, field, kind, resolved)
  local value = resolved and at_path(resolved.tree, path)
  if field.type == "component" and type(value) == "table" then value = value.kind end
  local entry = resolved and latest(resolved.history[path])
  local row = { path = path, kind = kind, type = schema.describe(field), help = field.help, required = field.required,
    set_by = entry and entry.by, set_at = entry and entry.by ~= "default" and entry.at or nil }
  if field.type ~= "struct" and field.type ~= "component" then row.default = field.default end
  row.value = value
  row.changed = entry ~= nil and entry.by ~= "default"
  return row
end

-- Rows of every key, in schema order: path, value, default, type, help, set_by, set_at. resolved:
-- session.load's result, or nil for the schema alone. options.under: only this path and below;
-- options.changed: only what is not a default.
function M.rows(resolved, options)
  local rows, under = native.array {}, options.under
  schema.walk(native.schema.fields, function(path, field, kind)
    if field.type == "struct" or not chosen(resolved and resolved.tree, path, kind) then return end
    if under and path ~= under and path:sub(1, #under + 1) ~= under .. "." then return end
    local row = row_of(path, field, kind, resolved)
    if row.changed or not options.changed then rows[#rows + 1] = row end
  end)
  return rows
end

local function shown(row, resolved)
  if resolved then return schema.literal(row.value) end
  if row.required then return "(required)" end
  return row.default == nil and "" or schema.literal(row.default)
end

-- The rows as text: key and value, then help, type and place below each.
function M.text(rows, resolved)
  local width, out = 0, {}
  for _, row in ipairs(rows) do width = math.max(width, #row.path) end
  for _, row in ipairs(rows) do
    local kind = row.kind and not resolved and ("  [%s]"):format(row.kind) or ""
    local place = row.set_at and ("  -- " .. row.set_at) or ""
    out[#out + 1] = ("%s%s  %s%s%s"):format(row.path, (" "):rep(width - #row.path), shown(row, resolved), kind, place)
    local default = resolved and row.default ~= nil and "; default " .. schema.literal(row.default) or ""
    out[#out + 1] = ("%s  %s  (%s%s)"):format((" "):rep(width), row.help, row.type, default)
  end
  return table.concat(out, "\n") .. "\n"
end

-- The history of one path as text, newest last; nil and a suggestion when there is no such key.
function M.why(resolved, path)
  local list = resolved.history[path]
  if not list then
    local near = schema.did_you_mean(path, schema.sorted_keys(resolved.history))
    return nil, ("[config] no key %s%s"):format(path, near and ("; did you mean %s?"):format(near) or "")
  end
  local out = {}
  for _, entry in ipairs(list) do
    out[#out + 1] = ("%-9s  %-14s  %s%s\n"):format(entry.by, entry.value, entry.by == "default" and "" or entry.at,
      entry.shadowed and "  (hidden by an argument)" or "")
  end
  return table.concat(out)
end

-- The door for C++: one load, and what a verb wants to know of it.
function M.config(request)
  local resolved
  if request.file then
    resolved = require("tycho.session").load(request)
    if resolved.problems > 0 then return { problems = resolved.problems, report = resolved.report } end
  end
  if request.why then
    local text, message = M.why(resolved, request.why)
    return { problems = 0, text = text, unknown = message, rows = resolved.history[request.why] }
  end
  local rows = M.rows(resolved, request)
  if #rows == 0 and request.under then
    local near = schema.did_you_mean(request.under, schema.all_paths(native.schema))
    return { problems = 0, unknown = ("[config] no key %s%s"):format(request.under,
      near and ("; did you mean %s?"):format(near) or "") }
  end
  return { problems = 0, text = M.text(rows, resolved), rows = rows }
end

return M
