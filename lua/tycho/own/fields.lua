-- Fields of kinds that a recipe or module defines, as the schema has them: t.number { default = 1, min = 0, help = "..." },
-- or the default alone.
local native = require "tycho.native"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

-- What t.number { ... } returns: opaque, so that nothing takes it for a table of values.
local function declared(word, spec)
  local value = newproxy(true)
  local meta = getmetatable(value)
  meta.__metatable = "field"
  meta.__tostring = function() return ("t.%s { ... }"):format(word) end
  meta.declared = spec
  return value
end

-- The schema behind such a value, or nil.
local function behind(x)
  local meta = type(x) == "userdata" and debug.getmetatable(x)
  return meta and meta.declared
end

local kLimits = { default = true, help = true, optional = true, required = true, min = true, max = true, above = true, below = true }

local function with(base, ...)
  local out = {}
  for name in pairs(base) do out[name] = true end
  for _, name in ipairs { ... } do out[name] = true end
  return out
end

local kCommon = { default = true, help = true, optional = true, required = true }
-- Word of t -> type in the schema, and what may be said about it.
local kWords = {
  number = { type = "number", options = with(kLimits, "unit") },
  integer = { type = "integer", options = with(kLimits, "unit", "multiple_of") },
  boolean = { type = "boolean", options = kCommon },
  string = { type = "string", options = kCommon },
  choice = { type = "enum", options = kCommon, has_items = true },
  list = { type = "list", options = with(kCommon, "length"), has_items = true },
  duration = { type = "duration", options = with(kLimits, "units") },
  bytes = { type = "bytes", options = kLimits },
}
local kTextOptions = { help = true, unit = true, units = true }
local kFlags = { optional = true, required = true }
local kUnits = { "ba", "ep", "sp", "tok", "dur", "s" }

-- What is wrong with one option of t.WORD { ... }, and a hint; nil for nothing.
local function option_problem(word, key, value)
  local known = kWords[word]
  if type(key) == "number" then return not known.has_items and ("t.%s takes options by name, such as  default = ..."):format(word) or nil end
  if not known.options[key] then
    local names = schema.sorted_keys(known.options)
    local near = schema.did_you_mean(key, names)
    return ("t.%s has no option %s"):format(word, tostring(key)),
      near and ("did you mean  %s?"):format(near) or "options: " .. table.concat(names, ", ")
  end
  if kTextOptions[key] and type(value) ~= "string" then return ("%s expects text in quotes, got %s"):format(key, schema.brief(value)) end
  if kFlags[key] and type(value) ~= "boolean" then return ("%s expects true or false, got %s"):format(key, schema.brief(value)) end
  if key ~= "default" and not kTextOptions[key] and not kFlags[key] and (type(value) ~= "number" or value ~= value) then
    return ("%s expects a number, got %s"):format(key, schema.brief(value))
  end
end

-- The units that t.duration { units = "ba tok" } names; nil and what is wrong.
local function unit_list(text)
  local out = native.array {}
  for word in (text or table.concat(kUnits, " ")):gmatch "%S+" do
    local is_known = false
    for _, unit in ipairs(kUnits) do is_known = is_known or unit == word end
    if not is_known then return nil, ("units: expected some of %s, got %s"):format(table.concat(kUnits, ", "), word) end
    out[#out + 1] = word
  end
  if #out == 0 then return nil, "units: expected some of " .. table.concat(kUnits, ", ") end
  return out
end

local function choice_values(given)
  local out, seen = native.array {}, {}
  for i, value in ipairs(given) do
    if type(value) ~= "string" then return nil, "t.choice expects texts: t.choice { \"min\", \"max\", default = \"min\" }" end
    if seen[value] then return nil, ("t.choice names %q twice"):format(value) end
    out[i], seen[value] = value, true
  end
  if #out < 2 then return nil, "t.choice expects two texts or more: t.choice { \"min\", \"max\", default = \"min\" }" end
  return out
end

local spec_of   -- of a value in fields, below

-- The type that t.list { t.number {}, ... } is a list of; nil and what is wrong.
local function list_item(given)
  local item, message = nil, nil
  if given[1] ~= nil then item, message = spec_of(given[1]) end
  if not item or #given > 1 or not schema.is_scalar(item) then
    return nil, message or "t.list expects one field for its values: t.list { t.number { min = 0 }, default = { 1, 2 } }"
  end
  item.default, item.help, item.required, item.name = nil, nil, nil, nil
  return item
end

-- A default as the schema has it: quantities as text; nil and what is wrong.
local function read_default(spec, value)
  if spec.type ~= "list" then
    local checked, message = schema.check(spec, value)
    if checked == nil then return nil, message end
    return values.is_quantity(checked) and values.text(checked) or checked
  end
  if type(value) ~= "table" or (spec.length and #value ~= spec.length) or #schema.sorted_keys(value) ~= #value then
    return nil, "expected a " .. schema.describe(spec)
  end
  local out = native.array {}
  for i, item in ipairs(value) do
    local checked, message = read_default(spec.item, item)
    if checked == nil then return nil, ("value %d: %s"):format(i, message) end
    out[i] = checked
  end
  return out
end

local function add_limits(spec, given)
  spec.min, spec.max = given.above or given.min, given.below or given.max
  spec.min_exclusive, spec.max_exclusive = given.above ~= nil or nil, given.below ~= nil or nil
  spec.multiple_of, spec.unit = given.multiple_of, given.unit
end

-- What makes a field required, optional, or gives it a default; nil and what is wrong.
local function add_default(spec, given)
  local default = given.default
  if default == values.required then default = nil end
  spec.optional = given.optional
  if default ~= nil and given.required then return nil, "a required field has no default" end
  if default == values.null and not given.optional then return nil, "default = t.null: add  optional = true" end
  if default == nil and given.optional then default = values.null end
  if default == nil then
    spec.required = true
  elseif default == values.null then
    spec.default = values.null
  else
    local message
    spec.default, message = read_default(spec, default)
    if spec.default == nil then return nil, ("default = %s: %s"):format(schema.brief(default), message) end
  end
  return spec
end

-- The schema of t.WORD { ... }; nil, what is wrong, a hint, and the option that it is about.
local function declared_spec(word, given)
  for _, key in ipairs(schema.sorted_keys(given)) do
    local message, hint = option_problem(word, key, given[key])
    if message then return nil, message, hint, key end
  end
  local spec, message = { type = kWords[word].type, help = given.help }, nil
  if word == "choice" then spec.values, message = choice_values(given) end
  if word == "list" then spec.item, message = list_item(given) end
  if word == "duration" then spec.units, message = unit_list(given.units) end
  if message then return nil, message end
  spec.length = given.length
  add_limits(spec, given)
  return add_default(spec, given)
end

local kDefaults = { number = "number", boolean = "boolean", string = "string" }

-- A list of numbers stands for a list of this length.
local function list_of_numbers(value)
  if type(value) ~= "table" or #value == 0 or #schema.sorted_keys(value) ~= #value then return nil end
  for _, item in ipairs(value) do
    if type(item) ~= "number" then return nil end
  end
  return { type = "list", length = #value, item = { type = "number" } }
end

-- The schema of what stands in fields: a declaration, or a default alone; nil and what is wrong.
function spec_of(value)
  if behind(value) then
    local out = {}
    for key, item in pairs(behind(value)) do out[key] = item end
    return out
  end
  local spec = values.is_quantity(value) and { type = value.class, units = value.class == "duration" and unit_list() or nil }
    or kDefaults[type(value)] and { type = kDefaults[type(value)] } or list_of_numbers(value)
  if not spec then
    return nil, ("expected a default or a field such as  t.number { default = 1, help = \"...\" }, got %s"):format(
      value == values.required and "t.required, which has no type" or schema.brief(value))
  end
  return add_default(spec, { default = value })
end

-- Fields of the schema for fields = { ... }, in the order of their names. What is wrong ends the recipe at its place. `what` is
-- the key of the table, `site` that of the table around it.
function M.read(session, given, what, site)
  local out, own_site = {}, site_of.child(site, what)
  if type(given) ~= "table" or values.is_quantity(given) then
    session:refuse_at(own_site, ("%s expects a table of fields: { every = t.duration \"10ba\", limit = t.number { min = 0 } }"):format(what))
  end
  for _, name in ipairs(schema.sorted_keys(given)) do
    if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
      session:refuse_at(own_site, ("%s: expected names of letters, digits and '_', got %s"):format(what, schema.brief(name)))
    end
    local spec, message = spec_of(given[name])
    if not spec then session:refuse_at(site_of.child(own_site, name), ("%s.%s: %s"):format(what, name, message)) end
    spec.name, spec.help = name, spec.help or ""
    out[#out + 1] = spec
  end
  return out
end

-- t.number { ... } and its like. A value that is no table is the default: t.number(3).
function M.declare(session, word, given)
  local options = type(given) == "table" and not values.is_quantity(given) and given or { default = given }
  local spec, message, hint, key = declared_spec(word, options)
  if not spec then session:refuse(key or word, message:find("t." .. word, 1, true) and message or ("t.%s: %s"):format(word, message), hint) end
  return declared(word, spec)
end

-- Words of t that declare fields and nothing else; t.duration and t.bytes make quantities, too.
function M.functions(session)
  local out = {}
  for _, word in ipairs { "number", "integer", "boolean", "string", "choice", "list" } do
    out[word] = function(given) return M.declare(session, word, given) end
  end
  return out
end

return M
