-- The strict tables behind a recipe: every group, component and list is a node that knows its schema and rejects unknown
-- keys. Recipes hold userdata proxies of nodes. write.lua changes them.
local functions = require "tycho.functions"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local other_names = require "tycho.hints.other_names"
local plain = require "tycho.plain"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local suggest = require "tycho.hints.suggest"
local values = require "tycho.values"

local M = {}

local kMaxListed = 8   -- keys that a hint names

-- The node behind a proxy, or nil. It is kept in the proxy's own metatable, which recipes cannot see: a weak table from
-- proxies to nodes would never let go, because a node names its proxy.
function M.behind(x)
  local meta = type(x) == "userdata" and debug.getmetatable(x)
  return meta and meta.node
end

-- Reports a problem of a node; the recipe goes on.
function M.problem(node, site, part, message, hint, facts)
  node.owner:problem(site_of.problem(site, part, message, hint, facts))
end
local problem = M.problem

local function proxy_of(node)
  local proxy = newproxy(true)
  local meta = getmetatable(proxy)
  meta.__metatable = "recipe"
  meta.__index = function(_, key) return M.read(node, key) end
  meta.__newindex = function(_, key, value) node.owner.write(node, key, value, site_of.of_key(node.owner.sites, key)) end
  meta.__len = function() return #node.keys end
  meta.__tostring = function() return schema.literal(M.plain(node)) end
  meta.node = node
  return proxy
end

-- An empty node. owner: the recipe's history, and its session's sites and problems. pins: those at and below this path.
function M.new(owner, spec, path, pins)
  local node = { owner = owner, spec = spec, path = path, pins = pins or { children = {} }, values = {}, state = {},
    written = {}, keys = {}, methods = {} }
  if spec.fields then node.keys = schema.names(spec.fields) end
  node.proxy = proxy_of(node)
  return node
end

-- The spec of a key, or nil when the node has no such key.
function M.spec_of(node, key)
  if node.spec.fields then return schema.field(node.spec.fields, key) end
  if node.spec.type == "map" then return type(key) == "string" and node.spec.item or nil end
  local last = node.spec.length or #node.keys + 1
  if type(key) == "number" and key >= 1 and key <= last and key % 1 == 0 then return node.spec.item end
end

-- The place of a name in a sorted list of others.
local function place_in(names, name)
  local low, high = 1, #names + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if names[middle] < name then low = middle + 1 else high = middle end
  end
  return low
end

-- Notes that a list or an open table is about to have one more key. Names stay sorted.
function M.add_key(node, key)
  if node.spec.type == "struct" or node.values[key] ~= nil then return end
  if node.spec.type ~= "map" then return table.insert(node.keys, key) end
  table.insert(node.keys, place_in(node.keys, key), key)
end

-- The dotted path of a node's key, as people write it.
function M.named(node, key)
  return node.path == "" and tostring(key) or ("%s.%s"):format(node.path, tostring(key))
end
local named = M.named

local function kinds_with(node, key)
  local kinds = {}
  for _, kind in ipairs(schema.sorted_keys(node.component.kinds)) do
    if schema.field(node.component.kinds[kind].fields, key) then kinds[#kinds + 1] = kind end
  end
  return kinds
end

local function index_hint(node, key)
  local name = node.path:match("[^%.]*$")
  if key == 0 then return ("Lua indices start at 1; %s[1] is the first value"):format(name) end
  if type(key) == "string" then return ("%s is a list, without names: { { ... }, { ... } }"):format(name) end
  return ("indices of %s are 1 to %d"):format(name, node.spec.length or #node.keys + 1)
end

local function keys_here(node)
  if #node.keys > kMaxListed then return "`tycho config` lists every key" end
  return "keys here: " .. table.concat(node.keys, ", ")
end

local function unknown_hint(node, key)
  if node.spec.type == "list" then return index_hint(node, key) end
  if type(key) ~= "string" then return "keys are names here" end
  local kinds = node.component and kinds_with(node, key) or {}
  if #kinds > 0 then
    return ("%s is %s here; %s is a key of %s"):format(node.path, node.kind, key, table.concat(kinds, ", "))
  end
  local elsewhere = other_names.key_hint(node.owner.schema, schema.join(node.path, key), key, node.keys)
  if elsewhere then return elsewhere end
  local near = suggest.paths(node.owner.schema, node.path, key, node.keys)
  return suggest.hint(node.owner.schema, near, node.path, node.spec.fields) or keys_here(node)
end

-- Reports a key that does not exist, with the keys that may have been meant.
function M.unknown_key(node, key, site)
  local where = node.kind and (" (%s)"):format(node.kind) or ""
  problem(node, site, "key", "unknown key  " .. named(node, key) .. where, unknown_hint(node, key),
    { path = named(node, key) })
end

local function read_unknown(node, key)
  if node.spec.type == "map" then return nil end
  if node.spec.type == "list" and type(key) == "number" and key > 0 then return nil end
  local site = site_of.of_key(node.owner.sites, key)
  if M.shadowed_key(node, key) then
    problem(node, site, "key", ("%s is read here, but an argument chose %s"):format(named(node, key), node.kind))
  else
    M.unknown_key(node, key, site)
  end
  node.owner:stop()
end

local function read_unset(node, key, spec)
  if node.spec.type == "map" or node.spec.type == "list" then return nil end
  local path = named(node, key)
  local site = site_of.of_key(node.owner.sites, key)
  if node.state[key] == "lazy" then
    problem(node, site, "key", path .. " is read here, but t.lazy computes it at the end",
      ("read it in another t.lazy(function(c) return %s end), or in r:check"):format(lexer.path("c", path)))
    node.owner:stop()
  end
  local hint = spec.type == "component" and ("choose one above:  %s = %s"):format(lexer.path("r", path), schema.example(spec))
    or ("set it above, or give it as an argument: %s=..."):format(path)
  problem(node, site, "key", path .. " is read here but not set yet", hint)
  node.owner:stop()
end

-- What a recipe sees under a key; reading an unknown key stops the recipe.
function M.read(node, key)
  if node.methods[key] then return node.methods[key] end
  local spec = M.spec_of(node, key)
  if not spec then return read_unknown(node, key) end
  if node.state[key] == "lazy" and node.owner.finished then node.owner.resolve(node, key) end
  if node.state[key] == "invalid" then
    if node.refused and node.refused[key] then node.owner:problem(node.refused[key]) end   -- an argument that this kind does not take
    node.owner:stop()
  end
  local value = node.values[key]
  if node.owner.session.evaluating == named(node, key) then value = node.written[key] or value end
  if node.pins.children[key] and node.pins.children[key].relative then node.pins.children[key].was_read = true end
  if value == values.null then return nil end
  if value == nil then return read_unset(node, key, spec) end
  if values.is_quantity(value) then return values.copy(value) end
  if functions.is(value) then return value.expression and value or value.fn end
  if plain.is(value) then return plain.copy(value.data) end
  return type(value) == "table" and value.proxy or value
end

-- The field at a dotted path of a recipe as it is now, of the kinds that it chose, and the component there or nil. nil where the path
-- leads elsewhere.
function M.field_at(root, path)
  local at, field = root, nil
  for part in path:gmatch "[^%.]+" do
    if type(at) ~= "table" or not at.proxy then return nil end
    local key = tonumber(part) or part
    field, at = M.spec_of(at, key), at.values[key]
    if not field then return nil end
  end
  return field, type(at) == "table" and at.kind and at or nil
end

-- A key of the component that a pin replaced: scheduler=constant hides what the recipe says about cosine's floor.
function M.shadowed_key(node, key)
  return node.pinned_kind and node.hidden_fields and schema.field(node.hidden_fields, key) ~= nil
end

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

-- plain() of a node, anything else as it is.
function M.data(value) return type(value) == "table" and value.proxy and M.plain(value) or value end

local function shallow(map)
  local out = {}
  for key, value in pairs(map or {}) do out[key] = value end
  return out
end

-- A copy of a node and everything below it, for a recipe that extends another.
function M.copy(node, owner)
  local out = M.new(owner, node.spec, node.path, node.pins)
  for _, mark in ipairs { "kind", "pinned_kind", "hidden_fields", "component", "closed" } do out[mark] = node[mark] end
  out.keys = { unpack(node.keys) }
  out.open_sites, out.lazy, out.state, out.written = shallow(node.open_sites), shallow(node.lazy), shallow(node.state),
    shallow(node.written)
  for key, value in pairs(node.values) do
    out.values[key] = type(value) == "table" and value.proxy and M.copy(value, owner) or value
  end
  return out
end

return M
