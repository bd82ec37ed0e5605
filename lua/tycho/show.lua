-- What `tycho config` prints: every key with value, unit, help, and who set it.
local commanded = require "tycho.commanded"
local formulas = require "tycho.maths.formulas"
local native = require "tycho.native"
local schema = require "tycho.schema"
local suggest = require "tycho.hints.suggest"

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
  local component
  repeat
    path = path:match("^(.*)%.[^.]*$")
    component = at_path(tree, path)
  until type(component) == "table" and component.kind or not path:find(".", 1, true)
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
  local usual = field.default
  if field.type == "component" and type(usual) == "table" then usual = usual.kind end
  row.changed = entry ~= nil and entry.by ~= "default" and schema.literal(value) ~= schema.literal(usual)
  return row
end

local function is_under(path, under) return not under or path == under or path:sub(1, #under + 1) == under .. "." end

-- Rows of the components in an open table: each name with its kind, and what is set in it.
local function add_named(rows, path, field, resolved, options)
  for _, name in ipairs(schema.sorted_keys(at_path(resolved.tree, path) or {})) do
    local here = schema.join(path, name)
    local whole = row_of(here, { type = "component", kinds = field.item.kinds, namespace = field.item.namespace,
      help = "" }, nil, resolved)
    local kind = field.item.kinds[whole.value]
    whole.help, whole.type = kind.help, "a component of t." .. field.item.namespace
    if is_under(here, options.under) then rows[#rows + 1] = whole end
    schema.walk(kind.fields, function(below, one)
      local row = row_of(below, one, nil, resolved)
      local wanted = row.changed or not options.changed
      if row.value ~= nil and row.value ~= native.null and wanted and is_under(below, options.under) then
        rows[#rows + 1] = row
      end
    end, here)
  end
end

-- Rows of every key, in schema order: path, value, default, type, help, set_by, set_at. resolved: tree, history and schema
-- of a recipe, or nil for the schema alone. options.under: only this path and below;
-- options.changed: only what is not a default.
function M.rows(resolved, options)
  local rows, under = native.array {}, options.under
  schema.walk((resolved and resolved.schema or native.schema).fields, function(path, field, kind)
    if field.type == "struct" or not chosen(resolved and resolved.tree, path, kind) then return end
    if resolved and field.type == "map" and field.item.type == "component" then
      return add_named(rows, path, field, resolved, options)
    end
    if not is_under(path, under) then return end
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

local function unknown_key(root, path)
  local parent, last = path:match("^(.*)%.([^%.]*)$")
  local beside = {}
  for _, known in ipairs(schema.all_paths(root)) do
    local above, name = known:match("^(.*)%.([^%.]*)$")
    if above == parent then beside[#beside + 1] = name or known end
  end
  local near = suggest.paths(root, parent or "", last or path, beside)
  local hint = suggest.hint(root, near, "")
  return ("[config] no key %s%s"):format(path, hint and "; " .. hint or "; `tycho config` lists every key")
end

-- The history of a path with what holds now at its end.
local function in_order(list)
  local holds, out = latest(list), {}
  for _, entry in ipairs(list) do
    if entry ~= holds then out[#out + 1] = entry end
  end
  out[#out + 1] = holds
  return out
end

local function entry_text(entry)
  local note = entry.shadowed and "  (hidden by an argument)" or entry.changed and "  (changed by an argument)" or ""
  local at = entry.by == "default" and "" or entry.at .. (entry.text and "  " .. entry.text or "")
  return ("%-9s  %-14s  %s%s"):format(entry.by, entry.value, at, note):gsub("%s+$", "") .. "\n"
end

-- The history of one path, what holds last, then what commands of the run in a folder made of it; nil and a suggestion
-- when there is no such key.
local function whole_history(resolved, path, run_dir)
  local list = resolved.history[path]
  if not list then return nil, unknown_key(resolved.schema, path) end
  local all = in_order(list)
  for _, entry in ipairs(run_dir and commanded.entries(run_dir, path) or {}) do all[#all + 1] = entry end
  return all
end

-- The same as text.
function M.why(resolved, path, run_dir)
  local all, message = whole_history(resolved, path, run_dir)
  if not all then return nil, message end
  local out = {}
  for i, entry in ipairs(all) do out[i] = entry_text(entry) end
  return table.concat(out) .. formulas.text(resolved.tree and at_path(resolved.tree, path))
end

-- The formulas of a recipe, below the name of their key.
local function formulas_of(resolved, under)
  local out = {}
  for _, field in ipairs(resolved.schema.fields) do
    local text = is_under(field.name, under) and formulas.text(resolved.tree[field.name]) or ""
    if text ~= "" then out[#out + 1] = ("%s computes\n%s"):format(field.name, text) end
  end
  return table.concat(out)
end

-- The door for C++: one load, and what a verb wants to know of it.
function M.config(request)
  local resolved
  if request.file then
    local session
    resolved, session = require("tycho.session").load(request)
    resolved.schema = session.schema
    if resolved.problems > 0 then return { problems = resolved.problems, report = resolved.report, problem_list = resolved.problem_list } end
  end
  if request.why then
    local run_dir = commanded.run_of(request.file)
    local text, message = M.why(resolved, request.why, run_dir)
    return { problems = 0, text = text, unknown = message, rows = whole_history(resolved, request.why, run_dir) }
  end
  local rows = M.rows(resolved, request)
  if #rows == 0 and request.under then
    local root = resolved and resolved.schema or native.schema
    if not schema.index(root)[request.under] then return { problems = 0, unknown = unknown_key(root, request.under) } end
  end
  return { problems = 0, text = M.text(rows, resolved) .. (resolved and formulas_of(resolved, request.under) or ""), rows = rows }
end

return M
