-- `tycho sweep RECIPE optimizer.lr=log(1e-4,6e-3) model.width=512,768`: a sweep written as arguments becomes a program,
-- which is read as any other. What is wrong in it is said of the argument.
local literal = require "tycho.overrides.literal"
local native = require "tycho.native"
local other_names = require "tycho.hints.other_names"
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

local kComponents = { choice = true, range = true, log = true, int = true, normal = true, zip = true, cases = true }

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

-- What the arguments of these values say under the name that the key has here, as "optimizer.lr" and { "1e-4", "1e-2" } for
-- learning_rate; nil where that is not known.
local function under_our_name(path, texts)
  local ours, out = nil, {}
  for i, text in ipairs(texts) do
    local override = overrides.parse(("%s=%s"):format(path, text))
    local hint = override and other_names.argument_hint(native.schema, override) or ""
    local key, value = hint:match "^write  '?([%w_%.]+)=([^';%s]+)'?$"
    if not key or (ours or key) ~= key then return nil end
    ours, out[i] = key, value
  end
  return ours, out
end

-- "write  KEY=VALUE" with each key as an argument of the sweep has it: `prefix` is "space." where a sweep is changed.
local function write_hint(prefix, ...)
  local out = {}
  for i, one in ipairs { ... } do out[i] = overrides.shell_word(prefix .. one) end
  return "write  " .. table.concat(out, "  or  ")
end

-- What to write for a space of a key that Tycho calls otherwise; nil where it has no such key.
local function renamed(prefix, path, value)
  local name, body = other_spaces.call(value)
  local spelling = name and other_spaces.spelling(nil, name, body) or not name and value
  local kind, inner = (spelling or ""):match "^(%l+)%((.*)%)$"
  local key, texts = under_our_name(path, literal.split(inner or spelling or ""))
  local list = key and table.concat(texts, ",")
  local field = key and schema.index(native.schema)[key]
  local ours = field and (kind and kind ~= "choice" and other_spaces.spelling(field, kind, list) or list)
  return ours and write_hint(prefix, ("%s=%s"):format(key, ours)) or nil
end

-- What is to be written for a value of this key that is neither one of its values nor a space.
local function advice_on(prefix, path, field, value)
  local spelling = field and other_spaces.of_value(field, value)
  local name, body = other_spaces.call(value)
  spelling = spelling or name and not field and other_spaces.spelling(nil, name, body)
  if spelling and spelling ~= value then return write_hint(prefix, ("%s=%s"):format(path, spelling)) end
  if kForms[name] then return "write  " .. kForms[name] end
  local examples = other_spaces.examples(field or { type = "number" })
  for i, one in ipairs(examples) do examples[i] = ("%s=%s"):format(path, one) end
  return examples[1] and write_hint(prefix, unpack(examples)) or "write  values as  A,B,C"
end

-- The space that a value stands for, nil for a plain value; false and what to write where it is a space of another system, or
-- ours with other things in its brackets.
local function space_of(path, value, prefix)
  local field = schema.index(native.schema)[path]
  local name, body = value:match "^(%l+)%((.*)%)$"
  local parts = literal.split(body or value)
  local other = not field and (#parts > 1 or other_spaces.call(value)) and renamed(prefix or "", path, value)
  if other then return false, other end
  if not schema.field(native.schema.fields, path:match "^[^%.]*") then return nil end   -- an unknown key, whatever its value
  if kForms[name] and are_numbers(name, parts) then return ("t.space.%s(%s)"):format(name, table.concat(parts, ", ")) end
  local is_list = #parts == 1 and parts[1]:find "^[%[{]" and not is_value(field, parts[1])
  if name == "choice" and #parts > 0 and not is_list then return choice(parts) end
  if is_value(field, value) then return nil end
  local is_call = other_spaces.call(value) and not (field and field.type == "string")
  local spelling = field and other_spaces.of_value(field, value)
  if is_call or (spelling and spelling ~= value) then return false, advice_on(prefix or "", path, field, value) end
  return #parts > 1 and choice(parts) or nil
end

-- Whether a value of this key has to be a space.
function M.is_space(path, value) return space_of(path, value) ~= nil end

-- A space as the value of the key space.PATH: log{low=1e-4,high=1e-2} for log(1e-4,1e-2), and other text as it is; nil and what to
-- write for a space of another system.
function M.as_component(path, value)
  if kComponents[value:match "^%l+%f[{]"] and value:find "=" then return value end
  local space, advice = space_of(path, value, "space.")
  if space == false then return nil, advice end
  local field = not space and schema.index(native.schema)[path]
  if not space then return field and literal.read(field, value) ~= nil and ("choice{values=[%s]}"):format(quoted(value)) or value end
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
