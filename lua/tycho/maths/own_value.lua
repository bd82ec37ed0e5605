-- Values that functions of a recipe define, without a constructor: t.loss.define(function(z) ... end) and its like.
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

-- A table whose other fields are errors at the line that reads or writes them. hint: what there is; cannot_set: the message of
-- writes, with the word and the field; read(key): is told what is read.
function M.strict(word, fields, hint, cannot_set, read)
  return setmetatable({}, {
    __index = function(_, key)
      local value = fields[key]
      if type(value) == "nil" then error(("%s has no field %s%s"):format(word, schema.brief(key), hint), 2) end   -- a symbol cannot be compared
      if read then read(key) end
      return value
    end,
    __newindex = function(_, key) error(cannot_set:format(word, tostring(key)), 2) end,
    __metatable = word,
  })
end

-- Where a value is defined: the table or function is what `define` was given.
function M.site(session, given)
  if type(given) == "table" then return site_of.of_definition(session.sites, "define", schema.sorted_keys(given)) end
  local file, line = site_of.caller(session.sites)
  return { file = file, line = line }
end

-- The name of the kind of a value: each place has a kind of its own.
function M.kind(session, namespace, site)
  local at, name, number = ("%s:%d"):format(site.file, site.line), "own", 1
  local function taken() return session.own_kinds[("%s.%s"):format(namespace, name)] end
  while taken() and taken().at ~= at do
    number = number + 1
    name = ("own_%d"):format(number)
  end
  return name
end

return M
