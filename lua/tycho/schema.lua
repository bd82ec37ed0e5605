-- Questions about the schema that C++ dumps from every fields(): which keys exist, what a value must be.
local functions = require "tycho.functions"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local other_values = require "tycho.hints.other_values"
local plain = require "tycho.plain"
local units = require "tycho.hints.units"
local values = require "tycho.values"

local M = {}

-- The field of this name in a list of fields, or nil.
function M.field(fields, name)
  for _, field in ipairs(fields) do
    if field.name == name then return field end
  end
end

function M.names(fields)
  local out = {}
  for i, field in ipairs(fields) do out[i] = field.name end
  return out
end

function M.sorted_keys(map)
  local out = {}
  for key in pairs(map) do out[#out + 1] = key end
  table.sort(out, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" or (type(a) == "string" and type(b) ~= "number") end
    if type(a) ~= "number" and type(a) ~= "string" then return tostring(a) < tostring(b) end
    return a < b
  end)
  return out
end

function M.join(path, key) return path == "" and tostring(key) or path .. "." .. tostring(key) end

-- Calls visit(path, field, kind) for every key of the schema, in order; a component's keys once for each
-- kind.
function M.walk(fields, visit, path, kind)
  for _, field in ipairs(fields) do
    local here = M.join(path or "", field.name)
    visit(here, field, kind)
    if field.type == "struct" then M.walk(field.fields, visit, here, kind) end
    if field.type == "component" then
      for _, name in ipairs(M.sorted_keys(field.kinds)) do M.walk(field.kinds[name].fields, visit, here, name) end
    end
  end
end

-- Every component of the schema by its namespace, also those inside open tables and lists.
function M.components(spec, found)
  found = found or {}
  if spec.type == "component" then
    found[spec.namespace] = spec
    for _, name in ipairs(M.sorted_keys(spec.kinds)) do M.components(spec.kinds[name], found) end
  end
  for _, field in ipairs(spec.fields or {}) do M.components(field, found) end
  if spec.item then M.components(spec.item, found) end
  return found
end

-- Every dotted path of the schema, once.
function M.all_paths(root)
  local out, seen = {}, {}
  M.walk(root.fields, function(path)
    if not seen[path] then out[#out + 1], seen[path] = path, true end
  end)
  return out
end

-- A copy of a schema -> the schema, as long as they have the same keys: what is found out about one holds for both.
M.same_as = setmetatable({}, { __mode = "k" })

local indexes = setmetatable({}, { __mode = "k" })

-- Dotted path -> the first field that has it.
function M.index(root)
  root = M.same_as[root] or root
  if not indexes[root] then
    local index = {}
    M.walk(root.fields, function(path, field) index[path] = index[path] or field end)
    indexes[root] = index
  end
  return indexes[root]
end

-- Forgets what was found out about a schema, which has just been changed.
function M.forget(root) M.same_as[root], indexes[root] = nil, nil end

-- "did you mean ..." over a list of names, or nil.
function M.did_you_mean(word, names)
  local close = native.nearest(tostring(word), names)
  if #close == 0 then return nil end
  return close[1], close
end

-- The name that `word` begins with, or that begins with it: optimizer for optim.
function M.same_beginning(word, names)
  for _, name in ipairs(names) do
    local shorter = math.min(#word, #name)
    if shorter >= 3 and word:sub(1, shorter) == name:sub(1, shorter) then return name end
  end
end

local function limits(spec)
  local out = {}
  local number = values.number_text
  if spec.min then out[#out + 1] = (spec.min_exclusive and "> " or ">= ") .. number(spec.min) end
  if spec.max then out[#out + 1] = (spec.max_exclusive and "< " or "<= ") .. number(spec.max) end
  local text = table.concat(out, " and ")
  if spec.unit then text = text .. (text == "" and "" or ", ") .. "in " .. spec.unit end
  if spec.multiple_of then
    text = text .. (text == "" and "" or ", ") .. "a multiple of " .. number(spec.multiple_of)
  end
  return text
end

local function quoted(names)
  local out = {}
  for i, name in ipairs(names) do out[i] = '"' .. name .. '"' end
  return table.concat(out, "  ")
end

local function spaced(head, tail) return tail == "" and head or head .. " " .. tail end

local function or_word(spec, text) return spec.word and ('%s, or "%s"'):format(text, spec.word) or text end

local function defined_by(spec) return ("t.%s.define(function(x) ... end)"):format(spec.defines) end

-- What a value of this spec is, in user words: "number > 0", 'one of  "fp32"  "bf16"'.
function M.describe(spec)
  local kind = spec.type
  if kind == "number" or kind == "integer" then return or_word(spec, spaced(kind, limits(spec))) end
  if kind == "boolean" then return "true or false" end
  if kind == "enum" then return "one of  " .. quoted(spec.values) .. (spec.defines and ("  or  " .. defined_by(spec)) or "") end
  if kind == "duration" then
    local text = "duration in " .. table.concat(spec.units or {}, ", ")
    local range = limits(spec)
    if range ~= "" then text = text .. ", " .. range end
    return or_word(spec, text)
  end
  if kind == "bytes" then return spaced('size like "64MiB"', limits(spec)) end
  if kind == "list" then
    return ("list of %s%s"):format(spec.length and spec.length .. " x " or "", M.describe(spec.item))
  end
  if kind == "map" then return "table of names, each " .. M.describe(spec.item) end
  if kind == "struct" then return "table of " .. table.concat(M.names(spec.fields), ", ") end
  if kind == "component" then
    local names = M.sorted_keys(spec.kinds)
    local first = ("t.%s.%s{}"):format(spec.namespace, names[1])
    if #names == 1 then return first end
    return ("one of  %s  .%s{}"):format(first, table.concat(names, "{}  .", 2))
  end
  if kind == "data" then return "table of plain data" end
  return kind
end

-- A value of this type, for hints.
function M.example(spec)
  if spec.type == "component" then return ("t.%s.%s{}"):format(spec.namespace, spec.usual) end
  if spec.type == "bytes" then return '"64MiB"' end
  return ('"100%s"'):format((spec.units or { "ba" })[1])
end

-- Numbers between 0 and 1, which may be written as "15%".
function M.is_ratio(spec) return spec.type == "number" and spec.min == 0 and spec.max == 1 end

-- "a number", "a table": what a value is.
function M.describe_value(value)
  local kind = type(value)
  return kind == "userdata" and "a Tycho value" or "a " .. kind
end

-- describe() without the names of kinds and fields.
function M.describe_shortly(spec)
  if spec.type == "component" then return ("a component of t.%s"):format(spec.namespace) end
  return spec.type == "struct" and "a table" or M.describe(spec)
end

-- describe() with what happens when the key is not set: "number > 0, required".
function M.describe_field(field)
  local text = M.describe_shortly(field)
  if field.required then return text .. ", required" end
  if field.type == "component" or field.type == "struct" then return text end
  return text .. ", default " .. M.literal(field.default)
end

-- A value as a recipe would write it; tables on one line.
function M.literal(value)
  if value == nil then return "nil" end
  if value == values.null then return "t.null" end
  if value == values.required then return "t.required" end
  if value == values.unset then return "t.unset" end
  if type(value) == "function" then return "a function" end
  if functions.is(value) then return ("function (%s)"):format(value.at) end
  if plain.is(value) then return M.literal(value.data) end
  if values.is_quantity(value) then return '"' .. values.text(value) .. '"' end
  if type(value) == "number" then return values.number_text(value) end
  if type(value) == "string" then return (("%q"):format(value):gsub("\\\n", "\\n")) end
  if type(value) ~= "table" then return tostring(value) end
  if value.code and value.expression then value = value.code end   -- of a resolved tree
  if value.at and value.hash then return ("function (%s)"):format(value.at) end   -- of a resolved tree
  local out = {}
  for _, key in ipairs(M.sorted_keys(value)) do
    local text = M.literal(value[key])
    out[#out + 1] = type(key) == "number" and values.holes(value, key) .. text or lexer.key(key) .. " = " .. text
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

local kMaxDepth, kMaxItems = 3, 8

-- literal() of anything at all, for messages: deep and long tables are cut, and so are those that contain themselves.
function M.brief(value, depth)
  depth = depth or 1
  if type(value) == "userdata" and value ~= values.null then return tostring(value) end
  if value ~= value then return "nan" end
  if plain.is(value) then value = value.data end
  if type(value) ~= "table" or functions.is(value) or values.is_quantity(value) or value == values.required or value == values.unset then
    local text = M.literal(value)
    return #text > 200 and text:sub(1, 200) .. '..."' or text
  end
  if depth > kMaxDepth then return "{...}" end
  local out = {}
  for i, key in ipairs(M.sorted_keys(value)) do
    if i > kMaxItems then
      out[i] = "..."
      break
    end
    out[i] = (type(key) == "number" and values.holes(value, key) or lexer.key(tostring(key)) .. " = ") .. M.brief(value[key], depth + 1)
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

local function wanted(spec) return "expected " .. M.describe(spec) end

local function in_limits(spec, x)
  if spec.min and (x < spec.min or (spec.min_exclusive and x == spec.min)) then return false end
  if spec.max and (x > spec.max or (spec.max_exclusive and x == spec.max)) then return false end
  return not spec.multiple_of or x % spec.multiple_of == 0
end

-- "; write 96 or 104" for 100 where a multiple of 8 is wanted; "" where none fits.
local function nearest_multiples(spec, value)
  local step, out = spec.multiple_of, {}
  if not step or type(value) ~= "number" or value % step == 0 or value ~= value then return "" end
  for _, one in ipairs { math.floor(value / step) * step, math.ceil(value / step) * step } do
    if in_limits(spec, one) then out[#out + 1] = ("%.0f"):format(one) end
  end
  return #out > 0 and "; write " .. table.concat(out, " or ") or ""
end

local check = {}

function check.boolean(spec, value)
  if type(value) == "boolean" then return value end
  return nil, wanted(spec)
end

function check.number(spec, value)
  if spec.word and value == spec.word then return value end
  local percent = M.is_ratio(spec) and type(value) == "string" and tonumber(value:match("^([%d%.]+)%%$"))
  if percent then value = percent / 100 end
  if type(value) ~= "number" or value ~= value or not in_limits(spec, value) then return nil, wanted(spec) end
  if value == math.huge or value == -math.huge then return nil, wanted(spec) .. ", finite" end
  return value
end

function check.integer(spec, value)
  if type(value) ~= "number" or value % 1 ~= 0 or not in_limits(spec, value) then
    return nil, wanted(spec) .. nearest_multiples(spec, value)
  end
  if math.abs(value) > 2 ^ 53 then return nil, "expected an integer that a double holds exactly, at most 2^53" end
  return value
end

function check.string(spec, value)
  if type(value) == "string" and native.utf8_error(value) then return nil, "expected text in UTF-8" end
  local unfilled = type(value) == "string" and spec.name and other_values.certain_interpolation(value)
  if unfilled then return nil, "Tycho does not expand " .. unfilled end
  if type(value) == "string" then return value end
  return nil, "expected text in quotes"
end

function check.enum(spec, value)
  for _, name in ipairs(spec.values) do
    if name == value then return value end
  end
  if spec.defines and functions.is(value) and value.expression then return value end
  if spec.defines and type(value) == "function" then return nil, "expected the name of one, or  " .. defined_by(spec) end
  local absent = type(value) == "string" and native.absent(value)
  if absent then return nil, ("%s  (%s)"):format(M.describe(spec), absent) end
  local other = type(value) ~= "boolean" and other_values.of_enum(value, spec.values)
  if other then return nil, ("%s; %s"):format(M.describe(spec), other) end
  local near = type(value) == "string" and M.did_you_mean(value, spec.values)
  return nil, M.describe(spec) .. (near and ('  (did you mean "%s"?)'):format(near) or "")
end

function check.duration(spec, value)
  if spec.word and value == spec.word then return value end
  if type(value) == "number" or (type(value) == "string" and tonumber(value)) then
    local number = type(value) == "number" and values.number_text(value) or value
    local meant = units.examples(spec, number)
    return nil, "a duration needs a unit: " .. (meant == "" and units.words(spec) or meant)
  end
  local quantity, message = value, nil
  if type(value) == "string" then quantity, message = values.duration(value) end
  if not quantity then
    if spec.units then message = ('expected a number and a unit of %s; got "%s"'):format(units.words(spec), value) end
    return nil, message .. units.meant(spec, value)
  end
  if not values.is_quantity(quantity) or quantity.class ~= "duration" then return nil, wanted(spec) end
  if spec.units then
    local known = false
    for _, unit in ipairs(spec.units) do known = known or unit == quantity.unit end
    if not known and quantity.unit == "s" then return nil, ("expected %s, got a time"):format(units.words(spec)) end
    if not known then
      local meant = units.examples(spec, values.number_text(quantity.value))
      return nil, meant == "" and "this one must be in " .. units.words(spec) or "this one must be in " .. meant
    end
  end
  if not in_limits(spec, quantity.value) then return nil, wanted(spec) end
  return values.copy(quantity)
end

function check.bytes(spec, value)
  local quantity, message = value, nil
  if type(value) == "string" then quantity, message = values.bytes(value) end
  if not quantity then return nil, message end
  if not values.is_quantity(quantity) or quantity.class ~= "bytes" or not in_limits(spec, quantity.value) then
    return nil, wanted(spec)
  end
  return values.copy(quantity)
end

check["function"] = function(_, value) return functions.keep(value) end

function check.data(_, value)
  if plain.is(value) then return value end
  return plain.keep(value)
end

-- The value as it is kept, or nil and what was wanted. Only for types without parts.
function M.check(spec, value) return check[spec.type](spec, value) end

function M.is_scalar(spec) return check[spec.type] ~= nil end

return M
