-- The table that recipes call t: recipes, component constructors, units, and the environment.
local native = require "tycho.native"
local node = require "tycho.node"
local recipe = require "tycho.recipe"
local sandbox = require "tycho.sandbox"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

-- One constructor per kind of every component in the schema, grouped by namespace.
local function constructors(session)
  local groups = {}
  schema.walk(session.schema.fields, function(_, field)
    if field.type ~= "component" then return end
    local group = groups[field.namespace] or {}
    groups[field.namespace] = group
    for kind in pairs(field.kinds) do
      group[kind] = function(given)
        if given == nil then given = {} end
        if type(given) ~= "table" then
          local name = ("t.%s.%s"):format(field.namespace, kind)
          session:refuse(kind, ("%s wants a table: %s { ... }"):format(name, name))
        end
        local site = site_of.of_call(session.sites, kind, schema.sorted_keys(given))
        return node.make_component(field.namespace, kind, given, site)
      end
    end
  end)
  return groups
end

local function read_environment(session, name, default)
  if type(name) ~= "string" then session:refuse("env", 't.env wants a name: t.env("DATA", "data")') end
  local value = native.env(name)
  session.environment[name] = value or values.null
  if value == nil then value = default end
  if value == nil then
    session:refuse("env", ("the environment variable %s is not set"):format(name),
      ("set it, or give a default:  t.env(%q, ...)"):format(name))
  end
  return value
end

-- The public table for one load of a recipe.
function M.new(session)
  local function refuse(...) return session:refuse(...) end
  local t = {
    version = native.version,
    required = values.required,
    null = values.null,
    recipe = function(name) return recipe.new(session, name) end,
    env = function(name, default) return read_environment(session, name, default) end,
    bytes = function(text) return values.bytes(text) or refuse("bytes", "t.bytes wants a size such as \"64MiB\"") end,
    duration = function(text)
      return values.duration(text) or refuse("duration", "t.duration wants a number with a unit such as \"100ba\"")
    end,
  }
  for _, unit in ipairs { "ba", "ep", "sp", "tok", "dur", "s" } do
    t[unit] = function(number)
      if type(number) ~= "number" then refuse(unit, ("t.%s wants a number: t.%s(100)"):format(unit, unit)) end
      return values.quantity("duration", number, unit)
    end
  end
  for namespace, group in pairs(constructors(session)) do
    t[namespace] = sandbox.view("t." .. namespace, group, refuse)
  end
  return sandbox.view("t", t, refuse)
end

return M
