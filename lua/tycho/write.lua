-- Writing into a recipe: what a value must be, who wins when a recipe and an argument disagree, and what is remembered.
local component = require "tycho.component"
local defines = require "tycho.maths.stubs".defines
local compound = require "tycho.compound"
local history = require "tycho.history"
local node_of = require "tycho.node"
local operators = require "tycho.overrides.operators"
local other_names = require "tycho.hints.other_names"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local join, named, problem, spec_of = schema.join, node_of.named, node_of.problem, node_of.spec_of

-- What is written wins or loses here: into the values, or only into the history when an argument holds the key.
function M.keep(node, key, value, site, by, changed)
  local shadowed = node.state[key] == "pinned" and by == "recipe"
  history.add(node.owner, join(node.path, key), by, site, node_of.data(value), shadowed, changed)
  if shadowed then
    node.written[key] = value
    return
  end
  if by == "argument" and node.state[key] ~= "pinned" then node.written[key] = node.values[key] end
  node_of.add_key(node, key)
  node.values[key] = value
  node.state[key] = by == "argument" and "pinned" or "set"
end

-- A value as messages show it.
local function shown(value)
  local behind = node_of.behind(value)
  if behind then value = node_of.plain(behind) end
  return schema.brief(value)
end

-- "call it:  t.cb.speed {}" for a constructor that was not called, or nil.
local function constructor_hint(node, namespace, value)
  for kind, make in pairs(namespace and node.owner.groups[namespace] or {}) do
    if make == value then return ("call it:  t.%s.%s {}"):format(namespace, kind) end
  end
end

-- What makes a value of a function, as  t.loss.define(...), or nil. Initial values of states are no values of init.
local function define_hint(namespace, value)
  local made = component.behind(value)
  local is_meant = type(value) == "function" or made and made.namespace == "init" and namespace == "init"
  return is_meant and defines[namespace] and "write  " .. defines[namespace][3] or nil
end

-- Reports a value that does not fit.
function M.refuse(node, key, value, site, message, hint)
  if type(value) == "function" and spec_of(node, key).type ~= "function" then
    local namespace = spec_of(node, key).namespace
    local is_callback = namespace == "cb"
    hint = hint or constructor_hint(node, namespace, value) or define_hint(namespace, value) or is_callback and "write  t.observe { batch_end = function(ctx) ... end }"
      or "call it, or have it called at the end:  t.lazy(function(c) return ... end)"
  end
  hint = hint or define_hint(spec_of(node, key).namespace, value)
  message = site.text and message or ("%s = %s: %s"):format(named(node, key), shown(value), message)
  problem(node, site, "value", message, hint or other_names.value_hint(named(node, key), value),
    { path = named(node, key), got = shown(value) })
  if node.state[key] ~= "pinned" then node.state[key] = "invalid" end
end

-- A value after the operators that arguments have for its key; nil after a problem was reported.
function M.related(node, key, value, check)
  local pins = node.pins.children[key]
  local changes = {}
  for i, op in ipairs(pins and pins.relative or {}) do
    local changed, message = operators.apply(spec_of(node, key), op.op, value, op.text)
    local before = value
    value = changed
    if changed ~= nil and check then value, message = check(changed) end
    if value == nil then
      local what = changed == nil and "" or ("%s after %s: "):format(schema.literal(changed), schema.literal(before))
      problem(node, op.site, "value", what .. message)
      node.state[key] = "invalid"
      return nil
    end
    changes[i] = { value = value, site = op.site }
  end
  return value, changes
end

-- The operators that arguments have for whatever the recipe writes here, or nil.
function M.relative_pins(node, key)
  local pins = node.pins.children[key]
  return pins and pins.relative and not pins.absolute and pins
end

local function warn_twice(node, key, site, pins)
  if not pins.was_read or pins.warned then return end
  pins.warned = true
  node.owner:warning(site_of.problem(site, "key", ("%s was read above, after %s, and is written here: %s acts again"):format(
    named(node, key), pins.relative[1].site.text, pins.relative[1].op)))
end

-- Keeps a checked value, after what arguments do to it.
local function keep_related(node, key, value, site, by, check)
  local pins = by ~= "argument" and value ~= values.null and M.relative_pins(node, key)
  if not pins or node.state[key] == "pinned" then return M.keep(node, key, value, site, by) end
  if by == "recipe" then warn_twice(node, key, site, pins) end
  M.keep(node, key, value, site, by, true)
  local result, changes = M.related(node, key, value, check)
  if result == nil then return end
  for _, change in ipairs(changes) do M.keep(node, key, change.value, change.site, "argument") end
  node.state[key], node.written[key] = "set", value
end

-- Gives a key its default back.
local function unset(node, key, spec, site, by)
  if node.spec.type == "map" then return compound.remove(node, key, site, by) end
  if spec.type == "map" and by == "argument" then
    node.values[key].closed = true   -- to the recipe; what later arguments add stays
    return
  end
  if spec.type == "map" then return compound.clear(node.values[key], site, by) end
  if spec.type == "struct" then
    for _, field in ipairs(spec.fields) do unset(node.values[key], field.name, field, site, by) end
    return
  end
  local is_open = spec.required or (spec.default == nil and not spec.optional)
  if is_open then return M.set(node, key, values.required, site, by) end
  local default = spec.default
  if default == nil then default = values.null end
  if spec.type == "component" and default ~= values.null then
    if by == "recipe" and node.state[key] == "pinned" then return end
    node.values[key] = nil
  end
  M.set(node, key, default, site, by)
end

local function set_marker(node, key, spec, value, site, by)
  if value == values.required then
    if node.state[key] ~= "pinned" then node.values[key], node.state[key] = nil, "open" end
    node.open_sites = node.open_sites or {}
    node.open_sites[key] = site
  elseif value == values.unset then
    if node.spec.type == "list" then
      return M.refuse(node, key, value, site, "one value of a list cannot be unset; write  t.remove{...}")
    end
    unset(node, key, spec, site, by)
  elseif value == values.null then
    if not spec.optional then return M.refuse(node, key, value, site, "expected " .. schema.describe(spec)) end
    M.keep(node, key, values.null, site, by)
  else
    local hint = node.spec.type == "map" and "; write t.unset to take the name out"
      or spec.optional and "; write t.null for none, t.unset for the default" or "; write t.unset for the default"
    M.refuse(node, key, value, site, "a key cannot be set to nil" .. hint)
  end
end

local function set_lazy(node, key, request, site, by)
  if node.spec.type == "list" then
    return M.refuse(node, key, request.given, site, "t.lazy makes a whole value",
      "write the list as  t.lazy(function(c) return { ... } end)")
  end
  local path = join(node.path, key)
  if node.state[key] == "pinned" then return history.add(node.owner, path, by, site, "t.lazy(...)", true) end
  node.lazy = node.lazy or {}
  node.lazy[key] = { fn = request.given, site = site }
  node.values[key], node.state[key] = nil, "lazy"
  if node.spec.type == "map" then
    compound.remove(node, key, site, by)
    node.state[key] = "lazy"
  end
end

-- Writes node.key = value. by: "recipe" (default), "argument" or "default". What is wrong is reported; the recipe goes on.
function M.set(node, key, value, site, by)
  by = by or "recipe"
  local spec = node_of.spec_of(node, key)
  if not spec then
    if node_of.shadowed_key(node, key) then return end
    return node_of.unknown_key(node, key, site)
  end
  if (node.state[key] == "removed" or node.closed) and by == "recipe" then
    return history.add(node.owner, join(node.path, key), by, site, shown(value), true)
  end
  if value == nil or value == values.required or value == values.unset or value == values.null then
    return set_marker(node, key, spec, value, site, by)
  end
  local request = component.request(value)
  if request and request.what == "lazy" then return set_lazy(node, key, request, site, by) end
  local setter = compound.setters[spec.type]
  if setter then return setter(node, key, spec, value, site, by) end
  local function check(x) return schema.check(spec, x) end
  local checked, message = check(value)
  if checked == nil then return M.refuse(node, key, value, site, message) end
  keep_related(node, key, checked, site, by, check)
end

return M
