-- `tycho sweep RECIPE optimizer.lr=log(1e-4,6e-3) model.width=512,768`: a sweep written as arguments becomes a program,
-- which is read as any other.
local literal = require "tycho.overrides.literal"
local native = require "tycho.native"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"

local M = {}

M.kFile = "sweep of arguments"   -- how messages call the program

local kCalls = { log = true, range = true, int = true, normal = true }

local function quoted(text) return (("%q"):format(text):gsub("\\\n", "\\n")) end

local function choice(parts)
  local out = {}
  for i, part in ipairs(parts) do out[i] = quoted(part) end
  return ("t.space.choice { %s }"):format(table.concat(out, ", "))
end

-- The space that a value stands for, or nil for a plain value.
local function space_of(value)
  local name, body = value:match("^(%l+)%((.*)%)$")
  if kCalls[name] then return ("t.space.%s(%s)"):format(name, body:gsub("[^%w%.,+%- ]", "")) end
  if name == "choice" then return choice(literal.split(body)) end
  local parts = literal.split(value)
  if #parts > 1 then return choice(parts) end
end

local function line_of(text, root)
  local override = overrides.parse(text)
  if not override or override.op ~= "=" then return nil end
  local first = tostring(override.parts[1].key)
  if schema.field(root.fields, first) and not schema.field(native.schema.fields, first) then return nil end
  local path, space = overrides.path(override.parts), space_of(override.value)
  if space then return ("s.space[%s] = %s"):format(quoted(path), space) end
  return ("s.pins[%s] = %s"):format(quoted(path), quoted(override.value))
end

-- The text of the program, and the arguments that are for the sweep itself.
function M.program(request)
  local root, rest = native.sweep_schema(), {}
  local lines = { 'local t = require "tycho"', ("local s = t.sweep %s"):format(quoted(request.name)),
    ("s.recipe = %s"):format(quoted(request.recipe)) }
  for _, one in ipairs(request.arguments) do
    local line = line_of(one.text, root)
    if line then lines[#lines + 1] = line else rest[#rest + 1] = one end
  end
  if request.trials then lines[#lines + 1] = ("s.search = t.search.random { trials = %d }"):format(request.trials) end
  lines[#lines + 1] = "return s\n"
  return table.concat(lines, "\n"), rest
end

return M
