-- What t.optim.adamw{...}, t.append{...}, t.lazy(...) return until they are assigned: the request, and where it was made.
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

local function kept(value, field)
  local meta = type(value) == "userdata" and debug.getmetatable(value)
  return meta and meta[field]
end

local function opaque(name, given)
  local value = newproxy(true)
  local meta = getmetatable(value)
  meta.__metatable = "component"
  meta.__tostring = function() return name .. (type(given) == "table" and schema.brief(given) or "(...)") end
  meta.__newindex = function() error(name .. "{...} cannot be changed; assign it to the recipe first", 2) end
  return value, meta
end

-- The component behind a value, or nil.
function M.behind(value) return kept(value, "component") end

function M.make(namespace, kind, given, site)
  local value, meta = opaque(("t.%s.%s"):format(namespace, kind), given)
  meta.__index = given
  meta.component = { namespace = namespace, kind = kind, given = given, site = site }
  return value
end

-- The constructor of a kind, t.NAMESPACE.KIND. prepare(given): the fields of what was given; without it, these are the fields.
function M.constructor(session, namespace, kind, prepare)
  local name = ("t.%s.%s"):format(namespace, kind)
  return function(given)
    if given == nil then given = {} end
    if type(given) ~= "table" then session:refuse(kind, ("%s expects a table: %s { ... }"):format(name, name)) end
    local site = site_of.of_call(session.sites, kind, schema.sorted_keys(given))
    return M.make(namespace, kind, prepare and prepare(given) or given, site)
  end
end

-- The request behind a value: what is "append", "prepend", "insert", "remove", "replace" or "lazy".
function M.request(value) return kept(value, "request") end

function M.make_request(what, given, site, at)
  local value, meta = opaque("t." .. what, given)
  meta.request = { what = what, given = given, site = site, at = at }
  return value
end

return M
