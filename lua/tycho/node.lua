-- The strict tables behind a recipe: every group, component and list is a node that knows its schema, refuses
-- what the schema does not have, and remembers who set each value. Recipes hold userdata proxies of nodes.
local history = require "tycho.history"
local native = require "tycho.native"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local join = schema.join
local behind = setmetatable({}, { __mode = "k" })   -- proxy -> node

-- The node behind a proxy, or nil.
function M.behind(x) return behind[x] end

local function problem(node, site, part, message, hint)
  node.owner:problem(site_of.problem(site, part, message, hint))
end

local function proxy_of(node)
  local proxy = newproxy(true)
  local meta = getmetatable(proxy)
  meta.__metatable = "recipe"
  meta.__index = function(_, key) return M.read(node, key) end
  meta.__newindex = function(_, key, value) M.set(node, key, value, site_of.of_key(node.owner.sites, key)) end
  meta.__len = function() return #node.keys end
  meta.__tostring = function() return schema.literal(M.plain(node)) end
  behind[proxy] = node
  return proxy
end

-- owner: the recipe's history, and its session's sites and problems. pins: those at and below this path.
local function new_node(owner, spec, path, pins)
  local node = { owner = owner, spec = spec, path = path, pins = pins or { children = {} }, values = {}, state = {},
    keys = {}, methods = {} }
  if spec.fields then node.keys = schema.names(spec.fields) end
  node.proxy = proxy_of(node)
  return node
end

-- The spec of a key, or nil when the node has no such key.
local function spec_of(node, key)
  if node.spec.fields then return schema.field(node.spec.fields, key) end
  if node.spec.type == "map" then return type(key) == "string" and node.spec.item or nil end
  local last = node.spec.length or #node.keys + 1
  if type(key) == "number" and key >= 1 and key <= last and key % 1 == 0 then return node.spec.item end
end

local function named(node, key)
  return node.path == "" and tostring(key) or ("%s.%s"):format(node.path, tostring(key))
end

-- Reports a key that does not exist, with the key that was meant.
function M.unknown_key(node, key, site)
  local near = node.spec.fields and schema.did_you_mean(key, node.keys)
  local hint
  if near then
    hint = ("did you mean  %s  (%s)?"):format(near, schema.describe_field(schema.field(node.spec.fields, near)))
  elseif node.spec.type == "list" then
    hint = "indices go from 1 to " .. (node.spec.length or #node.keys + 1)
  else
    hint = "keys here: " .. table.concat(node.keys, ", ")
  end
  local where = node.kind and (" (%s)"):format(node.kind) or ""
  problem(node, site, "key", "unknown key  " .. named(node, key) .. where, hint)
end

-- What a recipe sees under a key; reading what is not there stops the recipe.
function M.read(node, key)
  if node.methods[key] then return node.methods[key] end
  if node.spec.type == "list" and type(key) == "number" and not node.values[key] then return nil end
  local spec = spec_of(node, key)
  if not spec then
    if node.spec.type == "map" then return nil end
    local site = site_of.of_key(node.owner.sites, key)
    if M.shadowed_key(node, key) then
      problem(node, site, "key", ("%s is read here, but an argument chose %s"):format(named(node, key), node.kind))
    else
      M.unknown_key(node, key, site)
    end
    node.owner:stop()
  end
  local value, state = node.values[key], node.state[key]
  if state == "invalid" then node.owner:stop() end
  if value == values.null then return nil end
  if value == nil then
    if node.spec.type == "map" then return nil end
    local path = named(node, key)
    local hint = spec.type == "component" and ("choose one above:  r.%s = %s"):format(path, schema.describe(spec))
      or ("set it above, or give it as an argument: %s=..."):format(path)
    problem(node, site_of.of_key(node.owner.sites, key), "key", path .. " is read here but not set yet", hint)
    node.owner:stop()
  end
  if values.is_quantity(value) then return values.copy(value) end
  return type(value) == "table" and value.proxy or value
end

-- A key of the component that a pin replaced: scheduler=constant hides what the recipe says about cosine's floor.
function M.shadowed_key(node, key)
  return node.pinned_kind and node.hidden_fields and schema.field(node.hidden_fields, key) ~= nil
end

-- The same recipe for values that only are to be checked: what is written through it leaves no history.
function M.without_history(owner) return setmetatable({ history = false }, { __index = owner }) end

-- Plain data of a node: tables, numbers, text; quantities and t.null stay as they are.
function M.plain(node)
  local out = node.spec.type == "list" and native.array {} or {}
  if node.kind then out.kind = node.kind end
  for _, key in ipairs(node.keys) do
    local value = node.values[key]
    if type(value) == "table" and value.proxy then value = M.plain(value) end
    out[key] = value
  end
  return out
end

local function keep(node, key, value, site, by)
  local path = join(node.path, key)
  local plain = type(value) == "table" and value.proxy and M.plain(value) or value
  local shadowed = node.state[key] == "pinned" and by == "recipe"
  history.add(node.owner, path, by, site, plain, shadowed)
  if shadowed then return end
  if node.spec.type ~= "struct" and node.values[key] == nil then table.insert(node.keys, key) end
  if node.spec.type == "map" then table.sort(node.keys) end
  node.values[key] = value
  node.state[key] = by == "argument" and "pinned" or "set"
end

local function refuse(node, key, value, site, message)
  local shown = M.behind(value) and M.plain(M.behind(value)) or value
  shown = type(shown) == "userdata" and shown ~= values.null and tostring(shown) or schema.literal(shown)
  if site.argument then
    problem(node, site, "value", site.text .. ": " .. message)
  else
    problem(node, site, "value", ("%s = %s: %s"):format(named(node, key), shown, message))
  end
  if node.state[key] ~= "pinned" then node.state[key] = "invalid" end
end

local function as_table(value)
  if M.behind(value) then return M.plain(M.behind(value)) end
  return type(value) == "table" and not values.is_quantity(value) and value or nil
end

-- Writes every key of a table, in sorted order; `kind` names the component and is not a key.
local function set_all(node, given, site, by)
  for _, key in ipairs(schema.sorted_keys(given)) do
    if not (node.kind and key == "kind") then M.set(node, key, given[key], site_of.child(site, key), by) end
  end
end

local function set_list(node, key, spec, value, site, by)
  local given = as_table(value)
  local count = given and #given
  if not given or (spec.length and count ~= spec.length) then
    return refuse(node, key, value, site, "wanted a " .. schema.describe(spec))
  end
  local hidden = node.state[key] == "pinned" and by == "recipe"
  local list = new_node(hidden and M.without_history(node.owner) or node.owner, spec, join(node.path, key),
    node.pins.children[key])
  local problems = node.owner:problem_count()
  set_all(list, given, site, by)
  if node.owner:problem_count() == problems then
    M.apply_pins(list)
    keep(node, key, list, site, by)
  elseif not hidden then
    node.state[key] = "invalid"
  end
end

local function set_group(node, key, spec, value, site, by)
  local given = as_table(value)
  if not given then return refuse(node, key, value, site, "wanted a " .. schema.describe(spec)) end
  set_all(node.values[key], given, site, by)
end

-- The kind, the keys and the place of what was assigned to a component: t.optim.adamw{...}, another recipe's
-- component, or a plain table for the kind that is there already.
local function component_parts(node, key, value, site)
  local made = M.component_of(value)
  if made then return made.kind, made.given, made.site, made.namespace end
  local other = M.behind(value)
  if other and other.kind then return other.kind, M.plain(other), site end
  local present = node.values[key]
  if as_table(value) and (present or value.kind) then return value.kind or present.kind, value, site end
end

local function set_component(node, key, spec, value, site, by)
  local kind, given, parts_site, namespace = component_parts(node, key, value, site)
  if not kind or (namespace and namespace ~= spec.namespace) or not spec.kinds[kind] then
    return refuse(node, key, namespace and ("t.%s.%s"):format(namespace, kind) or value, site,
      "wanted " .. schema.describe(spec))
  end
  parts_site.file, parts_site.line = parts_site.file or site.file, parts_site.line or site.line
  local present = node.values[key]
  if present and present.pinned_kind and present.kind ~= kind and by == "recipe" then
    present.hidden_fields = spec.kinds[kind].fields
    local unused = M.new_component(M.without_history(node.owner), spec, kind, join(node.path, key))
    set_all(unused, given, parts_site, by)
    return history.add(node.owner, join(node.path, key), by, site, kind, true)
  end
  if not present or present.kind ~= kind then
    present = M.new_component(node.owner, spec, kind, join(node.path, key), node.pins.children[key])
    node.values[key] = present
  end
  present.pinned_kind = present.pinned_kind or by == "argument"
  node.state[key] = (by == "argument" or node.state[key] == "pinned") and "pinned" or "set"
  history.add(node.owner, join(node.path, key), by, site, kind)
  set_all(present, given, parts_site, by)
end

local setters = { list = set_list, map = set_group, struct = set_group, component = set_component }

-- Writes node.key = value. by: "recipe" (default), "argument" or "default". What is wrong is reported; the recipe goes on.
function M.set(node, key, value, site, by)
  by = by or "recipe"
  local spec = spec_of(node, key)
  if not spec then
    if M.shadowed_key(node, key) then return end
    return M.unknown_key(node, key, site)
  end
  if value == nil then
    local hint = spec.optional and "; write t.null for none" or ""
    return refuse(node, key, value, site, "a key cannot be set to nil" .. hint)
  end
  if value == values.required then
    if node.state[key] ~= "pinned" then node.values[key], node.state[key] = nil, "open" end
    node.open_sites = node.open_sites or {}
    node.open_sites[key] = site
    return
  end
  if value == values.null then
    if not spec.optional then return refuse(node, key, value, site, "wanted " .. schema.describe(spec)) end
    return keep(node, key, values.null, site, by)
  end
  if setters[spec.type] then return setters[spec.type](node, key, spec, value, site, by) end
  local checked, message = schema.check(spec, value)
  if checked == nil then return refuse(node, key, value, site, message) end
  keep(node, key, checked, site, by)
end

-- Writes the pins of this node's own keys, left to right as they were given.
function M.apply_pins(node)
  if not node or not node.pins then return end
  local mine = {}
  for key, pin in pairs(node.pins.children) do
    if pin.given then mine[#mine + 1] = { key = key, pin = pin.given } end
  end
  table.sort(mine, function(a, b) return a.pin.argument < b.pin.argument end)
  for _, one in ipairs(mine) do
    local spec = spec_of(node, one.key)
    if spec then
      local value, message = node.owner.read_pin(spec, one.pin.value)
      local site = { argument = one.pin.argument, text = one.pin.text }
      if value == nil then
        problem(node, site, "value", one.pin.text .. ": " .. message)
        node.state[one.key] = "invalid"
      else
        M.set(node, one.key, value, site, "argument")
      end
    end
  end
end

local function set_default(node, field)
  local key, default = field.name, field.default
  local path = join(node.path, key)
  local pins = node.pins.children[key]
  if field.type == "struct" then
    node.values[key] = M.new_struct(node.owner, field, path, pins)
  elseif field.type == "map" then
    node.values[key] = new_node(node.owner, field, path, pins)
    M.apply_pins(node.values[key])
  elseif default ~= nil and default ~= values.null and not field.required then
    if field.type == "component" then
      node.values[key] = M.new_component(node.owner, field, default.kind, path, pins)
      history.add(node.owner, path, "default", {}, default.kind)
    else
      M.set(node, key, default, {}, "default")
    end
  elseif not field.required then
    keep(node, key, values.null, {}, "default")
  end
end

local function fill(node)
  for _, field in ipairs(node.spec.fields) do set_default(node, field) end
  M.apply_pins(node)
  return node
end

-- A group with its defaults and pins.
function M.new_struct(owner, spec, path, pins) return fill(new_node(owner, spec, path, pins)) end

-- A component of one kind with its defaults and pins.
function M.new_component(owner, spec, kind, path, pins)
  local node = new_node(owner, { type = "struct", fields = spec.kinds[kind].fields }, path, pins)
  node.kind = kind
  return fill(node)
end

-- What t.optim.adamw{...} returns until it is assigned: kind, keys as given, place.
local made_components = setmetatable({}, { __mode = "k" })

function M.component_of(value) return made_components[value] end

function M.make_component(namespace, kind, given, site)
  local value = newproxy(true)
  local meta = getmetatable(value)
  local name = ("t.%s.%s"):format(namespace, kind)
  meta.__metatable = "component"
  meta.__tostring = function() return name .. schema.literal(given) end
  meta.__index = given
  meta.__newindex = function() error(name .. "{...} cannot be changed; assign it to the recipe first", 2) end
  made_components[value] = { namespace = namespace, kind = kind, given = given, site = site }
  return value
end

-- A copy of a node and everything below it, for a recipe that extends another.
function M.copy(node, owner)
  local out = new_node(owner, node.spec, node.path, node.pins)
  out.kind, out.pinned_kind, out.hidden_fields = node.kind, node.pinned_kind, node.hidden_fields
  out.keys = { unpack(node.keys) }
  out.open_sites = {}
  for key, site in pairs(node.open_sites or {}) do out.open_sites[key] = site end
  for key, state in pairs(node.state) do out.state[key] = state end
  for key, value in pairs(node.values) do
    out.values[key] = type(value) == "table" and value.proxy and M.copy(value, owner) or value
  end
  return out
end

return M
