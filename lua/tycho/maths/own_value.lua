-- Tables that functions of a recipe are called with, and values that they define without a constructor: t.loss.define(function(z) ... end).
local native = require "tycho.native"
local place_of = require "tycho.maths.place"
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

-- Returns what reports a field that the table does not have. none: what to write if it has no fields at all.
local function refusing(session, name, fields, none)
  return function(key)
    local names = schema.sorted_keys(fields)
    local near = schema.did_you_mean(key, names)
    session:refuse(tostring(key), ("no %s.%s"):format(name, tostring(key)), near and ("did you mean  %s.%s?"):format(name, near)
      or #names == 0 and (none or name .. " has no fields") or ("%s has %s"):format(name, table.concat(names, ", ")))
  end
end

local function refuse_write(session, name, key, why)
  session:refuse(tostring(key), ("%s.%s cannot be assigned here"):format(name, tostring(key)), why)
end

-- A table that has these fields alone; the sandbox's pairs and next read them. Fields that are null read as nil. options: read(key) is
-- told what is read, assign(key, value) takes what is written, fixed = hint where nothing may be written, none = hint where it has no fields.
function M.strict(session, name, fields, options)
  options = options or {}
  local refuse = refusing(session, name, fields, options.none)
  local function is_absent(key) return type(fields[key]) == "nil" end   -- a symbol is compared with nothing
  return setmetatable({}, { __metatable = "strict", fields = fields,
    __index = function(_, key)
      if is_absent(key) then refuse(key) end
      if options.read then options.read(key) end
      if rawequal(fields[key], native.null) then return nil end
      return fields[key]
    end,
    __newindex = function(_, key, value)
      if not options.assign then refuse_write(session, name, key, options.fixed) end
      if is_absent(key) then refuse(key) end
      options.assign(key, value)
    end })
end

-- A real list, for ipairs, unpack and #. Places that it does not have are errors.
local function list_of(session, name, items)
  local list, refuse = {}, refusing(session, name, items)
  for i, item in ipairs(items) do list[i] = item end
  return setmetatable(list, { __metatable = "strict", __index = function(_, key) refuse(key) end,
    __newindex = function(_, key) refuse_write(session, name, key) end })
end

-- The table h of one call of fn: hyperparameters by name, with the symbols that stand for numbers, by the names of inputs ("h.lr",
-- "h.betas.1"); and a function that refuses lists which the call has changed.
function M.hyperparameters(session, fn, values, symbols, options)
  local h, lists = { step = symbols["h.step"] }, {}
  for key, value in pairs(values) do
    h[key] = symbols["h." .. key] or value
    if type(value) == "table" then
      lists[key] = {}
      for i, item in ipairs(value) do lists[key][i] = symbols[("h.%s.%d"):format(key, i)] or item end
      h[key] = list_of(session, "h." .. key, lists[key])
    end
  end
  return M.strict(session, "h", h, options), function()
    for key, items in pairs(lists) do
      local same = #h[key] == #items
      for i, item in ipairs(items) do
        local now = rawget(h[key], i)
        same = same and (rawequal(now, item) or type(now) == "number" and now ~= now)   -- NaN stands for a number, too
      end
      if not same then
        local file, line = place_of.naming(session, fn, key)
        place_of.refuse(session, file, line, key, ("h.%s was changed by the function"):format(key), ("change a list of your own:  { unpack(h.%s) }"):format(key))
      end
    end
  end
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
