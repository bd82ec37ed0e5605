-- `tycho sweep RECIPE optimizer.lr=log(1e-4,6e-3) model.width=512,768`: a sweep written as arguments becomes a program,
-- which is read as any other. What is wrong in it is said of the argument.
local literal = require "tycho.overrides.literal"
local native = require "tycho.native"
local other_spaces = require "tycho.hints.other_spaces"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"
local steps = require "tycho.sweep.steps"
local values = require "tycho.values"

local M = {}

M.kFile = "sweep of arguments"   -- how messages call the program

-- What may stand in the brackets of each call.
local kForms = { range = "range(LOW,HIGH) or range(LOW,HIGH,STEP)", int = "int(LOW,HIGH) or int(LOW,HIGH,STEP)",
  log = "log(LOW,HIGH) or log(LOW,HIGH,COUNT)", normal = "normal(MEAN,STD)" }
local kAnyForm = "values as  1,2,3  or a space as  log(1e-4,1e-2)  range(0,0.3)  int(2,8)  normal(0,0.02)"

local function quoted(text) return (("%q"):format(text):gsub("\\\n", "\\n")) end

local function choice(parts)
  local out = {}
  for i, part in ipairs(parts) do out[i] = quoted(part) end
  return ("t.space.choice { %s }"):format(table.concat(out, ", "))
end

local function are_numbers(kind, parts)
  for _, part in ipairs(parts) do
    if not tonumber(part) then return false end
  end
  return #parts == 2 or (#parts == 3 and kind ~= "normal")
end

-- Whether a text is one value of the key, as [0.9,0.95] is of optimizer.betas.
local function is_value(field, text) return field and field.type ~= "string" and literal.read(field, text) ~= nil end

-- The space that a value stands for, nil for a plain value; false and what to write where it is a space of another system, or
-- ours with other things in its brackets.
local function space_of(path, value)
  local field = schema.index(native.schema)[path]
  local name, body = value:match "^(%l+)%((.*)%)$"
  local parts = literal.split(body or value)
  if kForms[name] and are_numbers(name, parts) then
    return ("t.space.%s(%s)"):format(name, table.concat(parts, ", "))
  end
  local is_list = #parts == 1 and parts[1]:find "^[%[{]" and not is_value(field, parts[1])
  if name == "choice" and #parts > 0 and not is_list then return choice(parts) end
  name, body = other_spaces.call(value)
  if not name then return #parts > 1 and not is_value(field, value) and choice(parts) or nil end
  if field and field.type == "string" then return nil end
  local spelling = other_spaces.spelling(field, name, body)
  if spelling then return false, "write  " .. overrides.shell_word(("%s=%s"):format(path, spelling)) end
  return false, "write  " .. (kForms[name] or kAnyForm)
end

-- A space as the value of the key space.PATH: log{low=1e-4,high=1e-2} for log(1e-4,1e-2). Other text as it is.
function M.as_component(path, value)
  local space = space_of(path, value)
  if not space then return value end
  local kind, body = space:match "^t%.space%.(%l+)%((.*)%)$"
  if not kind then return ("choice{values=[%s]}"):format(space:match "{ (.*) }$") end
  local numbers = literal.split(body)
  if #numbers == 3 then
    local list = steps.values(kind, tonumber(numbers[1]), tonumber(numbers[2]), tonumber(numbers[3]))
    if not list then return value end
    for i, one in ipairs(list) do list[i] = values.number_text(one) end
    return ("choice{values=[%s]}"):format(table.concat(list, ","))
  end
  local names = kind == "normal" and { "mean", "std" } or { "low", "high" }
  return ("%s{%s=%s,%s=%s}"):format(kind, names[1], numbers[1], names[2], numbers[2])
end

-- The line of the program that an argument becomes, nil for one of the sweep itself, or nil and a problem.
local function line_of(one, root)
  local override = overrides.parse(one.text)
  if not override or override.op ~= "=" then return nil end
  local first = tostring(override.parts[1].key)
  if schema.field(root.fields, first) and not schema.field(native.schema.fields, first) then return nil end
  local path = overrides.path(override.parts)
  local space, advice = space_of(path, override.value)
  if space then return ("s.space[%s] = %s"):format(quoted(path), space) end
  if space == nil then return ("s.pins[%s] = %s"):format(quoted(path), quoted(override.value)) end
  return nil, { argument = one.argument, text = one.text, col = override.value_col, len = #override.value,
    message = ("expected a space of values, got %s"):format(override.value), hint = advice }
end

-- Gives the request the text of the program, the arguments that are for the sweep itself, and what is wrong with the others.
function M.make_program(request)
  local root, rest, problems = native.sweep_schema(), {}, {}
  local lines = { 'local t = require "tycho"', ("local s = t.sweep %s"):format(quoted(request.name)),
    ("s.recipe = %s"):format(quoted(request.recipe)) }
  local places = { { line = 0 }, { line = 0 }, { line = 0 } }
  for _, one in ipairs(request.arguments) do
    local line, problem = line_of(one, root)
    if line then
      lines[#lines + 1], places[#places + 1] = line, { argument = one.argument, text = one.text }
    elseif problem then
      problems[#problems + 1] = problem
    else
      rest[#rest + 1] = one
    end
  end
  if request.trials then lines[#lines + 1] = ("s.search = t.search.random { trials = %d }"):format(request.trials) end
  lines[#lines + 1] = "return s\n"
  local text = table.concat(lines, "\n")
  request.file, request.arguments, request.problems = M.kFile, rest, problems
  request.files = request.files or {}
  request.files[M.kFile] = text
  request.made_from = { [M.kFile] = { file = M.kFile, text = text, lines = places } }
  return text
end

return M
