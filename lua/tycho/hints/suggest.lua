-- "Did you mean": up to three keys for a wrong one, beside it first, then over the whole dotted schema.
local native = require "tycho.native"
local schema = require "tycho.schema"

local M = {}

local kMax = 3

local function add_new(list, seen, names, prefix)
  for _, name in ipairs(names) do
    local path = prefix and schema.join(prefix, name) or name
    if #list < kMax and not seen[path] then list[#list + 1], seen[path] = path, true end
  end
end

local function last_part(path) return path:match("[^%.]+$") end

-- The dotted paths of the schema without those of kinds that are not in use: keys right below `parent` stand in `beside`.
local function usable_paths(root, parent, beside)
  local stands, out = {}, {}
  for _, name in ipairs(beside) do stands[name] = true end
  for _, path in ipairs(schema.all_paths(root)) do
    local below = path:match("^(.*)%.[^%.]+$") or ""
    if below ~= parent or stands[last_part(path)] then out[#out + 1] = path end
  end
  return out
end

-- Keys that `wrong` below `parent` may have meant, as dotted paths; `beside` are the keys that stand there.
function M.paths(root, parent, wrong, beside)
  local found, seen, all = {}, {}, usable_paths(root, parent, beside)
  add_new(found, seen, native.nearest(wrong, beside), parent)
  local elsewhere = {}
  for _, path in ipairs(all) do
    if last_part(path) == wrong then elsewhere[#elsewhere + 1] = path end
  end
  add_new(found, seen, elsewhere)
  local above = parent   -- where the reader is, and what that is in
  while above do
    seen[above] = true
    above = above:match "^(.*)%."
  end
  if #found == 0 then add_new(found, seen, native.nearest(schema.join(parent, wrong), all)) end
  if #found == 0 and #wrong > 3 then
    local names, path_of = {}, {}
    for _, path in ipairs(all) do
      local name = last_part(path)
      if not path_of[name] then names[#names + 1], path_of[name] = name, path end
    end
    for _, name in ipairs(native.nearest(wrong, names)) do add_new(found, seen, { path_of[name] }) end
  end
  return found
end

-- The first field of the schema that has this dotted path, or nil.
function M.field(root, path)
  local fields, index = schema.index(root), tostring(path)
  return fields[index]
end

local function what_of(field)
  return field.type == "map" and schema.describe_shortly(field.item) or schema.describe_field(field)
end

-- The kinds that have this key, as "of sgd, muon"; nil for a key of all kinds, or of no component.
local function kinds_text(root, path)
  local component = M.field(root, path:match("^(.*)%.[^%.]+$") or "")
  if not component or component.type ~= "component" then return nil end
  local having, all = {}, schema.sorted_keys(component.kinds)
  for _, kind in ipairs(all) do
    if schema.field(component.kinds[kind].fields, last_part(path)) then having[#having + 1] = kind end
  end
  return #having < #all and "of " .. table.concat(having, ", ") or nil
end

-- 'did you mean  lr  (number > 0, required)?' with a second and a third candidate behind it; nil for none. Paths are
-- shown without `under`, where the reader is, and open tables with a name in them: eval_data.NAME. `here`: the fields
-- under it, which are those of one kind of a component; other kinds may have fields of the same path.
function M.hint(root, found, under, here)
  if #found == 0 then return nil end
  local shown = {}
  for i, path in ipairs(found) do
    local inside = under ~= "" and path:sub(1, #under + 1) == under .. "."
    local field = M.field(root, path)
    shown[i] = (inside and path:sub(#under + 2) or path) .. (field and field.type == "map" and ".NAME" or "")
  end
  local name, field = last_part(found[1]), M.field(root, found[1])
  if field and here and schema.join(under, name) == found[1] then field = schema.field(here, name) or field end
  local kinds = under == "" and kinds_text(root, found[1])
  local what = field and what_of(field) .. (kinds and "; " .. kinds or "")
  local text = ("did you mean  %s%s"):format(shown[1], what and ("  (%s)"):format(what) or "")
  for i = 2, #shown do text = text .. ("%s  %s"):format(i == #shown and "  or" or ",", shown[i]) end
  return text .. "?"
end

return M
