-- Making nodes: a group or a component starts from the schema's defaults and takes its pins.
local compound = require "tycho.compound"
local history = require "tycho.history"
local node_of = require "tycho.node"
local other_names = require "tycho.hints.other_names"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"
local write = require "tycho.write"

local M = {}

local join = schema.join

local function pinned_value(node, spec, pin)
  if pin.given ~= nil then return pin.given end
  return node.owner.read_pin(spec, pin.value)
end

-- Whether another kind of this component, which the recipe may choose later, has the key.
local function is_key_elsewhere(node, key)
  for name, kind in pairs(node.component and node.component.kinds or {}) do
    if name ~= node.kind and schema.field(kind.fields, key) then return true end
  end
  return false
end

-- Writes one pin, and what relative operators make of it.
local function apply_pin(node, key, spec, place)
  local pin = place.absolute
  if pin.op == ":=" and pin.given == nil then return end   -- not known in this pass
  local value, message = values.unset, nil
  if pin.op ~= "~" then value, message = pinned_value(node, spec, pin) end
  if value == nil then
    local path = join(node.path, key)
    local facts = { path = path, got = pin.value }
    local problem = site_of.problem(pin.site, "value", message, other_names.value_hint(path, pin.value, spec), facts)
    if is_key_elsewhere(node, key) then   -- a problem only if this kind stays: check_pins
      node.refused[key] = problem
    else
      node.owner:problem(problem)
    end
    node.state[key] = "invalid"
    return
  end
  write.set(node, key, value, pin.site, "argument")
  if not place.relative or node.values[key] == nil or node.state[key] == "invalid" then return end
  local function check(x) return schema.check(spec, x) end
  local _, changes = write.related(node, key, node_of.data(node.values[key]), schema.is_scalar(spec) and check or nil)
  for _, change in ipairs(changes or {}) do write.set(node, key, change.value, change.site, "argument") end
end

-- Writes the pins of this node's own keys, left to right as they were given.
function M.apply_pins(node)
  local mine = {}
  for key, place in pairs(node.pins and node.pins.children or {}) do
    if place.absolute then mine[#mine + 1] = { key = key, place = place } end
  end
  table.sort(mine, function(a, b)
    if a.place.absolute.order ~= b.place.absolute.order then return a.place.absolute.order < b.place.absolute.order end
    return tostring(a.key) < tostring(b.key)
  end)
  for _, one in ipairs(mine) do
    local spec = node_of.spec_of(node, one.key)
    if spec then apply_pin(node, one.key, spec, one.place) end
  end
  if node.spec.type ~= "map" then return end
  for _, key in ipairs(schema.sorted_keys(node.pins.children)) do   -- pins below names that exist by pins only
    local item = node.spec.item
    local is_new = node.values[key] == nil and next(node.pins.children[key].children)
    if is_new and item.type == "struct" then compound.group_at(node, key, item) end
  end
end

local function set_default(node, field)
  local key, default = field.name, field.default
  local path = join(node.path, key)
  local pins = node.pins.children[key]
  if field.type == "struct" then
    node.values[key] = M.struct(node.owner, field, path, pins)
  elseif field.type == "map" then
    node.values[key] = node_of.new(node.owner, field, path, pins)
    M.apply_pins(node.values[key])
  elseif default ~= nil and default ~= values.null and not field.required then
    if field.type == "component" then
      node.values[key] = M.component(node.owner, field, default.kind, path, pins)
      history.add(node.owner, path, "default", {}, default.kind)
    else
      write.set(node, key, default, {}, "default")
    end
  elseif not field.required then
    write.keep(node, key, values.null, {}, "default")
  end
end

local function fill(node)
  for _, field in ipairs(node.spec.fields) do set_default(node, field) end
  M.apply_pins(node)
  return node
end

-- A group with its defaults and pins.
function M.struct(owner, spec, path, pins) return fill(node_of.new(owner, spec, path, pins)) end

-- A component of one kind with its defaults and pins.
function M.component(owner, spec, kind, path, pins)
  local node = node_of.new(owner, { type = "struct", fields = spec.kinds[kind].fields }, path, pins)
  node.kind, node.component, node.refused = kind, spec, {}
  return fill(node)
end

return M
