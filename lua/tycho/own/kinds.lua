-- Kinds of components that a recipe or module defines. They stand in the schema of their session, so that they behave as
-- built-in ones do; C++ reads each as the built-in kind that it is based on, its base.
local component = require "tycho.component"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

-- Copies what leads to components, so that kinds can be added; the rest is shared.
local function copied(spec)
  local out
  local function put(key, value)
    if value == spec[key] then return end
    if not out then
      out = {}
      for name, one in pairs(spec) do out[name] = one end
    end
    out[key] = value
  end
  local function of_all(map)
    local changed
    for key, one in pairs(map) do
      local copy = copied(one)
      if copy ~= one then
        if not changed then
          changed = setmetatable({}, debug.getmetatable(map))
          for name, each in pairs(map) do changed[name] = each end
        end
        changed[key] = copy
      end
    end
    return changed or map
  end
  if spec.fields then put("fields", of_all(spec.fields)) end
  if spec.item then put("item", copied(spec.item)) end
  if spec.type == "component" then
    local kinds = {}
    for name, kind in pairs(of_all(spec.kinds)) do kinds[name] = kind end
    put("kinds", kinds)
  end
  return out or spec
end

-- A schema for one session, which kinds are added to.
function M.schema_of_session(root)
  local copy = copied(root)
  if copy ~= root then schema.same_as[copy] = root end
  return copy
end

-- Every component of a schema that has this namespace.
local function components(spec, namespace, found)
  found = found or {}
  if spec.type == "component" and spec.namespace == namespace then found[#found + 1] = spec end
  for _, field in ipairs(spec.fields or {}) do components(field, namespace, found) end
  if spec.item then components(spec.item, namespace, found) end
  for _, kind in pairs(spec.type == "component" and spec.kinds or {}) do components(kind, namespace, found) end
  return found
end

local kReserved = { kind = "names the kind of a component", base = "is what Tycho keeps the base of the kind under" }

-- A base's field with the default that the kind gives it.
local function with_default(session, kind, field, own)
  local out = {}
  for key, value in pairs(field) do out[key] = value end
  out.required, out.default = own.required, own.default
  if own.default ~= nil and own.default ~= values.null then
    local checked, message = schema.check(field, own.default)
    if checked == nil then session:refuse_at(site_of.child(site_of.child(kind.site, kind.table), field.name), ("%s: %s"):format(field.name, message)) end
  end
  return out
end

-- The base's fields that users of the kind may set, and then the kind's own.
local function fields_of(session, kind, base)
  local out, of_base, at = {}, {}, {}
  for _, field in ipairs(base.fields) do
    local is_hidden = field.type == "function"
    for _, name in ipairs(kind.without or {}) do is_hidden = is_hidden or name == field.name end
    of_base[field.name] = is_hidden and "is used by Tycho itself" or ("is an option of every t.%s component"):format(kind.namespace)
    if not is_hidden then out[#out + 1], at[field.name] = field, #out + 1 end
  end
  for _, field in ipairs(kind.fields) do
    local why, place = kReserved[field.name] or of_base[field.name], kind.sets_defaults and at[field.name]
    if place then
      out[place] = with_default(session, kind, out[place], field)
    elseif why then
      session:refuse_at(site_of.child(site_of.child(kind.site, kind.table), field.name),
        ("%s: a field of %s cannot have this name, which %s"):format(field.name, kind.name, why), "choose another name")
    else
      out[#out + 1] = field
    end
  end
  return out
end

-- Adds a kind to a schema.
local function add_to_schema(root, kind)
  schema.forget(root)
  for _, spec in ipairs(components(root, kind.namespace)) do spec.kinds[kind.name] = kind.spec end
end

local function check_name(session, kind, found)
  local name, group, site = kind.name, "t." .. kind.namespace, site_of.child(kind.site, "name")
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    session:refuse_at(site, ("name: expected letters, digits and '_', got %s"):format(schema.brief(name)))
  end
  local own = session.own_kinds[kind.namespace .. "." .. name]
  if own and kind.site.file ~= "stdin" then   -- at a prompt a kind may be defined again
    session:refuse_at(site, ("%s.%s is defined at %s already"):format(group, name, own.at), "choose another name")
  end
  if not own and (found.kinds[name] and not found.kinds[name].own or found.bases and found.bases[name]) then
    session:refuse_at(site, ("%s.%s is built in"):format(group, name), "choose another name")
  end
end

-- Registers a kind, and returns its constructor, which t.NAMESPACE has, too. kind: namespace ("cb"), base ("control"), name, help,
-- fields (of fields.lua), table (the key that holds them, "fields"), without (names of the base's fields that its users do not
-- set), sets_defaults (a field with the name of one of the base's gives that another default), site (of the table that defines
-- it), functions (whatever the caller wants to find again), definition(values, made, node): the base's fields that the kind
-- itself sets, as plain data; values are those of a component as plain data, made is the finished recipe.
function M.register(session, kind)
  local found = components(session.schema, kind.namespace)[1]
  kind.at = ("%s:%d"):format(kind.site.file, kind.site.line)
  check_name(session, kind, found)
  local base = found.kinds[kind.base] or found.bases[kind.base]
  kind.spec = { type = "struct", help = kind.help, fields = fields_of(session, kind, base), own = kind }
  add_to_schema(session.schema, kind)
  session.own_kinds[kind.namespace .. "." .. kind.name] = kind
  local make = component.constructor(session, kind.namespace, kind.name)
  session.groups[kind.namespace][kind.name] = make
  return make
end

-- Adds kinds to a schema: so that arguments may name those that a pass before this one defined.
function M.expect(root, kinds)
  for _, name in ipairs(schema.sorted_keys(kinds)) do add_to_schema(root, kinds[name]) end
end

-- Takes over the kinds of the recipe that a resolved one was made of.
function M.take(session, from)
  for _, name in ipairs(schema.sorted_keys(from.own_kinds)) do
    local kind = from.own_kinds[name]
    add_to_schema(session.schema, kind)
    session.own_kinds[name] = kind
    session.groups[kind.namespace][kind.name] = component.constructor(session, kind.namespace, kind.name)
  end
end

-- The own kind of a node, or nil.
function M.of_node(node)
  local spec = node.component and node.component.kinds[node.kind]
  return spec and spec.own
end

-- Adds to the tree of a recipe what own kinds give to their bases. That of a finished recipe is found out once.
function M.complete(made, node, tree)
  local own = M.of_node(node)
  if own then
    local definition = made.finished and node.definition or own.definition(tree, made, node)
    if made.finished then node.definition = definition end
    tree.base = own.base
    for key, value in pairs(definition) do tree[key] = value end
  end
  for _, key in ipairs(node.keys) do
    local below = node.values[key]
    if type(below) == "table" and below.proxy then M.complete(made, below, tree[key]) end
  end
end

return M
