-- t.arg: arguments that are not keys but names defined by the file, as in `tycho sweep x.lua method=random`.
local pins = require "tycho.overrides.pins"
local schema = require "tycho.schema"

local M = {}

local function is_key(root, name)
  return schema.field(root.fields, name) ~= nil
end

-- Keeps each name=value whose name is not a key of the schema for t.arg; returns all others.
function M.take(session, arguments)
  local others = {}
  session.own_arguments = {}
  for _, one in ipairs(arguments) do
    local name, value = (one.text or ""):match("^([%a_][%w_]*)=(.*)$")
    if name and not is_key(session.schema, name) then
      session.own_arguments[name] = { value = value, one = one }
    else
      others[#others + 1] = one
    end
  end
  return others
end

-- Reports arguments that t.arg never read, as unknown keys.
function M.report_unused(session, tell)
  for _, name in ipairs(schema.sorted_keys(session.own_arguments or {})) do
    local own = session.own_arguments[name]
    if not own.used then pins.parse(session.schema, { own.one }, tell) end
  end
end

local function converted(session, name, text, default)
  if type(default) == "number" then
    return tonumber(text) or session:refuse("arg", ("the argument %s expected a number, got %q"):format(name, text))
  end
  if type(default) == "boolean" then
    if text == "true" then return true end
    if text == "false" then return false end
    session:refuse("arg", ("the argument %s expected true or false, got %q"):format(name, text))
  end
  return text
end

-- The value of name=value, of the type of the default; the default when it is not given.
function M.read(session, name, default)
  if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") then
    session:refuse("arg", 't.arg expects a name: t.arg("method", "random")')
  end
  if is_key(session.schema, name) then
    session:refuse("arg", ("%s is a key: read it as a value, not with t.arg"):format(name))
  end
  local own = session.own_arguments and session.own_arguments[name]
  if own then
    own.used = true
    return converted(session, name, own.value, default)
  end
  if default == nil then
    session:refuse("arg", ("the argument %s is missing"):format(name), ("add  %s=VALUE  to the command, or a default"):format(name))
  end
  return default
end

return M
