-- t.debug(): a prompt inside a call of a callback or schedule, with what the function there can see.
local attached = require "tycho.attached"
local native = require "tycho.native"
local node = require "tycho.node"
local schema = require "tycho.schema"
local show = require "tycho.repl.show"

local M = {}

local kMaxNames = 200
local kGoOn = { continue = true, c = true, quit = true, exit = true }
local kEntry = { max_instructions = 1e8, max_seconds = 10 }

-- The level, seen from its caller, of the innermost function of recipe code, and where it is.
local function function_of_recipe()
  local level = 3
  while true do
    local info = debug.getinfo(level, "Slf")
    if not info then return nil end
    if info.source:sub(1, 1) == "@" and info.currentline > 0 then
      return level - 1, ("%s:%d"):format(info.source:sub(2), info.currentline), info.func
    end
    level = level + 1
  end
end

-- What a function on the stack can see: its upvalues and its locals, the innermost last.
local function names_at(level, fn)
  local out = {}
  for i = 1, kMaxNames do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    out[name] = value
  end
  for i = 1, kMaxNames do
    local name, value = debug.getlocal(level + 1, i)
    if not name then break end
    if name:sub(1, 1) ~= "(" then out[name] = value end
  end
  return out
end

local function sorted(names)
  local out = {}
  for name in pairs(names) do out[#out + 1] = name end
  table.sort(out)
  return table.concat(out, " ")
end

local kHelp = "An entry is Lua with these names, and those of tycho attach: ctx, r, model, opt, ...  docs/callbacks.md\n"
  .. "?name  explains a name here or a key of the recipe.  An empty line, continue or Ctrl-D: the run goes on.\n"

-- What ?name shows: a key of the recipe, or what a name of the call holds.
local function help(made, name, names)
  if name == "" then return kHelp .. "Names: " .. sorted(names) end
  local path = name:match "^r%.(.+)$" or name
  local field = names[name] == nil and node.field_at(made.root, path)
  if field then return ("%s : %s.  %s"):format(path, schema.describe_field(field), field.help or "") end
  if names[name] ~= nil then return ("%s is a %s: %s"):format(name, type(names[name]), show.value(names[name])) end
  local near = schema.did_you_mean(name, schema.sorted_keys(names))
  return ("no help for %s: %s"):format(name, near and ("did you mean %s?"):format(near) or "? alone lists the names; docs/objects.md has the members of objects")
end

local said = {}   -- places that have said that there is no terminal

local function say_no_prompt(terminal, at, why)
  if said[at] then return end
  said[at] = true
  terminal.write(("t.debug() at %s: %s, so the run continues\n"):format(at, why))
end

-- Opens a prompt on `terminal` (functions of C++). made: the recipe of the run; ctx: the argument of the call; on_error: makes
-- the message of what an entry raises.
function M.open(terminal, made, ctx, on_error)
  local level, at, fn = function_of_recipe()
  if not level then return end   -- called by no line of the recipe
  local why = terminal.refusal()
  if why then return say_no_prompt(terminal, at, why) end
  local names, left_s = names_at(level, fn), terminal.limit_s
  terminal.write(("\nt.debug() at %s; the run waits, for at most %d minutes. Names: %s. ?NAME explains one; an empty line or Ctrl-D continues.\n")
    :format(at, terminal.limit_s / 60, sorted(names)))
  while left_s > 0 do
    local line, taken_s = terminal.line(("%s> "):format(at), left_s)
    if not line or line:match "^%s*$" or kGoOn[line] then break end
    left_s = left_s - taken_s
    local asked = line:match "^%s*%?%s*(.-)%s*$"
    local ok, result = native.limited(function()
      return asked and help(made, asked, names) or attached.evaluate(made, line, ctx, on_error, names)
    end, kEntry.max_instructions, kEntry.max_seconds)
    if not ok and native.exit_of(result) == native.exit_interrupted then error(result, 0) end
    local text = ok and result or type(result) == "table" and result.message or tostring(result)
    if text ~= "" then terminal.write(text .. "\n") end
  end
  terminal.write(("the run continues after %s\n"):format(at))
  terminal.close()
end

return M
