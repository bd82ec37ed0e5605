-- Writes values with parts into a recipe: lists, groups, open tables, components.
local component = require "tycho.component"
local history = require "tycho.history"
local lists = require "tycho.lists"
local node_of = require "tycho.node"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local join = schema.join

-- write.lua and build.lua need this file too, so they are asked for when they are called.
local function write() return require "tycho.write" end
local function build() return require "tycho.build" end

-- The same recipe for values that are only checked: writes through it leave no history.
local function without_history(owner) return setmetatable({ history = false }, { __index = owner }) end

-- The items or keys of what was assigned; nil when it is not a table.
local function as_table(value)
  local behind = node_of.behind(value)
  if behind then return node_of.plain(behind) end
  return type(value) == "table" and not values.is_quantity(value) and value or nil
end

-- Writes every key of a table, in sorted order; `kind` names the component and is not a key.
local function set_all(node, given, site, by)
  for _, key in ipairs(schema.sorted_keys(given)) do
    if not (node.kind and key == "kind") then write().set(node, key, given[key], site_of.child(site, key), by) end
  end
end

-- What a list or open table becomes by t.append and its like.
local function requested(node, key, spec, value, site)
  local request = component.request(value)
  local present = node.values[key]
  local list = type(present) == "table" and present.proxy and node_of.plain(present) or {}
  local function read(item) return schema.is_scalar(spec.item) and schema.check(spec.item, item) or nil end
  local made, message = lists.apply(request, list, read)
  if not made then return write().refuse(node, key, value, site, message) end
  return made
end

local function set_list(node, key, spec, value, site, by)
  if component.request(value) then
    value = requested(node, key, spec, value, site)
    if not value then return end
  end
  local given = as_table(value)
  local pins = by ~= "argument" and write().relative_pins(node, key)
  local changes
  if given and pins and node.state[key] ~= "pinned" then
    given, changes = write().related(node, key, given)
    if not given then return end
  end
  if not given or (spec.length and #given ~= spec.length) then
    local blamed = changes and changes[#changes].site or site
    return write().refuse(node, key, given or value, blamed, "expected a " .. schema.describe(spec))
  end
  local hidden = node.state[key] == "pinned" and by == "recipe"
  local list = node_of.new(hidden and without_history(node.owner) or node.owner, spec, join(node.path, key),
    node.pins.children[key])
  local problems = node.owner:problem_count()
  set_all(list, given, site, by)
  if node.owner:problem_count() == problems then
    build().apply_pins(list)
    write().keep(node, key, list, site, by, changes ~= nil)
    for _, change in ipairs(changes or {}) do
      history.add(node.owner, list.path, "argument", change.site, change.value)
    end
  elseif not hidden then
    node.state[key] = "invalid"
  end
end

-- A group or an open table of a map gets its node when its name is first written.
function M.group_at(node, key, spec)
  local group = node.values[key]
  if not group then
    group = spec.type == "struct" and build().struct(node.owner, spec, join(node.path, key), node.pins.children[key])
      or node_of.new(node.owner, spec, join(node.path, key), node.pins.children[key])
    build().apply_pins(group)
    node_of.add_key(node, key)
    node.values[key] = group
  end
  return group
end

-- Takes every name out of an open table.
function M.clear(map, site, by)
  for _, key in ipairs({ unpack(map.keys) }) do M.remove(map, key, site, by) end
end

local function set_group(node, key, spec, value, site, by)
  local request = component.request(value)
  local given = request and request.given or as_table(value)
  if type(value) == "string" and spec.shorthand then
    local fits, message = schema.check(schema.field(spec.fields, spec.shorthand), value)
    if fits == nil then
      return write().refuse(node, key, value, site, ("expected %s, or a %s"):format(message, schema.describe(spec)))
    end
    given = { [spec.shorthand] = value }
  end
  if not given or (request and spec.type ~= "map") then
    return write().refuse(node, key, value, site, "expected a " .. schema.describe(spec))
  end
  local group = M.group_at(node, key, spec)
  if request and request.what == "remove" then
    for _, name in ipairs(given) do M.remove(group, name, site, by) end
    return
  end
  if request and request.what == "replace" then M.clear(group, site, by) end
  set_all(group, given, site, by)
end

-- The component that stands under a key; nil where the key has none.
local function standing(node, key)
  local present = node.values[key]
  return present ~= values.null and present or nil
end

-- The kind, the keys and the place of what was assigned to a component: t.optim.adamw{...}, another recipe's
-- component, or a plain table for the kind that is there already.
local function component_parts(node, key, value, site)
  local made = component.behind(value)
  if made then return made.kind, made.given, made.site, made.namespace end
  local other = node_of.behind(value)
  if other and other.kind then return other.kind, node_of.plain(other), site end
  local present = standing(node, key)
  if as_table(value) and (present or value.kind) then return value.kind or present.kind, value, site end
end

local function set_component(node, key, spec, value, site, by)
  local kind, given, parts_site, namespace = component_parts(node, key, value, site)
  if not kind or (namespace and namespace ~= spec.namespace) or not spec.kinds[kind] then
    local word = kind or (type(value) == "string" and value)
    local near = word and not namespace and schema.did_you_mean(word, schema.sorted_keys(spec.kinds))
    return write().refuse(node, key, value, site, ("expected %s%s"):format(schema.describe(spec),
      near and ("  (did you mean t.%s.%s{}?)"):format(spec.namespace, near) or ""))
  end
  if not parts_site.file then
    parts_site = setmetatable({ file = site.file, line = site.line }, { __index = parts_site })
  end
  local present, path = standing(node, key), join(node.path, key)
  local other_kind, none = present and present.pinned_kind and present.kind ~= kind, not present and node.state[key] == "pinned"
  if by == "recipe" and (other_kind or none) then   -- as an argument says
    if present then present.hidden_fields = spec.kinds[kind].fields end
    local unused = build().component(without_history(node.owner), spec, kind, path)
    set_all(unused, given, parts_site, by)
    return history.add(node.owner, path, by, site, kind, true)
  end
  if not present or present.kind ~= kind then
    present = build().component(node.owner, spec, kind, path, node.pins.children[key])
    node_of.add_key(node, key)
    node.values[key] = present
  end
  present.pinned_kind = present.pinned_kind or by == "argument"
  node.state[key] = (by == "argument" or node.state[key] == "pinned") and "pinned" or "set"
  history.add(node.owner, path, by, site, kind)
  set_all(present, given, parts_site, by)
end

-- Takes a name out of an open table.
function M.remove(map, key, site, by)
  local path = join(map.path, key)
  local hidden = by == "recipe" and map.state[key] == "pinned"
  history.add(map.owner, path, by, site, values.unset, hidden)
  if hidden then return end
  map.values[key] = nil
  map.state[key] = by == "argument" and "removed" or nil
  for i = #map.keys, 1, -1 do
    if map.keys[i] == key then table.remove(map.keys, i) end
  end
end

M.setters = { list = set_list, map = set_group, struct = set_group, component = set_component }

return M
