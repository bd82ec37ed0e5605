-- Specs of lua/tycho/serialize.lua: a resolved recipe as Lua, with every key that Tycho has.
local native = require "tycho.native"
local schema = require "tycho.schema"
local serialize = require "tycho.serialize"
local show = require "tycho.repl.show"

local example   -- of a field, below

local function examples(fields)
  local out = {}
  for _, field in ipairs(fields) do out[field.name] = example(field) end
  return out
end

local kExamples = { number = 0.5, integer = 3, boolean = true, string = 'a "word"\n', duration = "10ba", bytes = "64MiB" }

-- A value of the field's type, and of each part of it; `kind`: of a component, or its usual one.
function example(field, kind)
  if field.type == "enum" then return field.values[1] end
  if field.type == "struct" then return examples(field.fields) end
  if field.type == "list" then return { example(field.item) } end
  if field.type == "map" then return { ["end"] = example(field.item), ["a-b"] = example(field.item) } end
  if field.type == "data" then return { ["until"] = 1, nested = { ["do"] = "x" } } end
  if field.type == "function" then return native.null end
  if field.type ~= "component" then return kExamples[field.type] end
  kind = kind or field.kinds[field.usual] and field.usual or schema.sorted_keys(field.kinds)[1]
  local made = examples(field.kinds[kind].fields)
  made.kind = kind
  return made
end

-- What a recipe sets, read by Lua itself: t.NAMESPACE.KIND gives a table with its kind.
local function values_of(text)
  local constructors = setmetatable({}, { __index = function(_, kind)
    return function(given)
      given.kind = kind
      return given
    end
  end })
  local r = {}
  local t = setmetatable({ null = native.null, recipe = function() return r end },
    { __index = function() return constructors end })
  local chunk, message = loadstring((text:gsub('require "tycho"', "...")))
  if not chunk then return message .. "\n" .. text end
  return chunk(t)
end

local function written(fields, tree) return values_of(serialize.recipe({ fields = fields }, tree, "x", function() return "" end)) end

describe("a recipe that is written", function()
  it("has every key of every section as Lua reads it", function()
    local fields = native.schema.fields
    local tree = examples(fields)
    expect(written(fields, tree)).to_equal(tree)
  end)

  it("has every key of every kind of component", function()
    local num_kinds = 0
    for namespace, found in pairs(schema.components(native.schema)) do
      for kind in pairs(found.kinds) do
        local field = { name = "while", type = "component", namespace = namespace, usual = kind, kinds = found.kinds }
        local tree = { ["while"] = example(field, kind) }
        expect(written({ field }, tree)).to_equal(tree)
        num_kinds = num_kinds + 1
      end
    end
    expect(num_kinds > 40).to_equal(true)
  end)

  it("reads functions from where they stand, whatever the keys on the way are called", function()
    local fields = { { name = "end", type = "struct", fields = { { name = "fn", type = "function" } } } }
    local text = serialize.recipe({ fields = fields }, { ["end"] = { fn = { at = "x", hash = "y" } } }, "x", function() return "" end)
    expect(text).to_contain 'r["end"] = {\n  fn = from["end"].fn,'
  end)
end)

describe("a value in one line", function()
  it("is Lua, whatever its keys are called", function()
    local value = { ["repeat"] = 1.5, plain = true, ["a-b"] = { ["end"] = "x" } }
    for _, text in ipairs { schema.literal(value), show.value(value) } do
      local chunk = loadstring("return " .. text)
      expect(chunk and chunk() or text).to_equal(value)
    end
  end)
end)
