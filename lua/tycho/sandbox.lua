-- The world that a recipe sees: the same on every rank and every day. An allow-list of Lua, sorted pairs,
-- seeded random, strict globals; no clock, no files, no processes, no native code, no bytecode.
local component = require "tycho.component"
local habits = require "tycho.hints.habits"
local native = require "tycho.native"
local node = require "tycho.node"
local operations = require "tycho.maths.operations"
local other_names = require "tycho.hints.other_names"
local schema = require "tycho.schema"

local M = {}

local kWhyNot = {
  os = "recipes have no clock and cannot start programs: every rank must see the same values. "
    .. 't.env("NAME", default) reads the environment',
  io = "recipes cannot read or write files; put data into a Lua file and require it",
  ffi = "native code cannot be called from recipes",
  jit = "compilation is off while a recipe runs",
  package = "use require with a name or with a path that starts with ./",
  collectgarbage = "memory is managed for you",
  dofile = "use require", loadfile = "use require",
  setfenv = "environments are fixed", getfenv = "environments are fixed",
  newproxy = "recipes can only create plain tables",
}
local kNoDebug = "recipes cannot access Lua's internals"
local kNoGlobals = "globals are strict here; use local names"

-- Keys in one order on every rank: numbers, then strings. LuaJIT's own order differs from process to process.
local function sorted_keys(t, what)
  for key in pairs(t) do
    if type(key) ~= "string" and type(key) ~= "number" then
      error(("%s: keys must be strings or numbers to be visited in a fixed order, found a %s")
        :format(what, type(key)), 3)
    end
  end
  return schema.sorted_keys(t)
end

-- The fields of a table of own_value.strict, or nil.
local function strict_fields(t)
  local meta = type(t) == "table" and debug.getmetatable(t)
  return meta and meta.fields
end

local function plain(t)
  local behind, fields = node.behind(t), strict_fields(t)
  if behind or fields then
    local out = {}
    for _, key in ipairs(behind and behind.keys or schema.sorted_keys(fields)) do out[key] = t[key] end
    return out
  end
  local made = component.behind(t)
  return made and made.given or t
end

local function safe_pairs(t)
  local readable = plain(t)
  local keys, i = sorted_keys(readable, "pairs"), 0
  return function()
    repeat i = i + 1 until keys[i] == nil or type(readable[keys[i]]) ~= "nil"   -- a symbol is compared with nothing
    if keys[i] ~= nil then return keys[i], readable[keys[i]] end
  end, t, nil
end

local function safe_next(t, key)
  local readable = plain(t)
  local keys = sorted_keys(readable, "next")
  local at = 0
  if key ~= nil then
    for i, k in ipairs(keys) do
      if k == key then at = i end
    end
    if at == 0 then error("next: no such key", 2) end
  end
  local following = keys[at + 1]
  if following == nil then return nil end
  return following, readable[following]
end

local function safe_tostring(x)
  local kind = type(x)
  if kind == "number" then return native.number_text(x) end   -- Lua's own cuts 0.1 + 0.2 to 0.3
  local meta = (kind == "table" or kind == "userdata") and debug.getmetatable(x)
  if meta and meta.__tostring then return tostring(x) end
  if kind == "table" or kind == "function" or kind == "userdata" or kind == "thread" then return kind end
  return tostring(x)
end

local function safe_format(text, ...)
  local given = { n = select("#", ...), ... }
  for i = 1, given.n do
    if type(given[i]) ~= "number" and type(given[i]) ~= "string" then given[i] = safe_tostring(given[i]) end
  end
  return string.format(text, unpack(given, 1, given.n))
end

-- A read-only view: an unknown name says what was meant. Userdata, so that rawset cannot reach it.
-- refuse(name, message, hint) reports at the recipe's line and stops it. call: what the view does when it is called.
function M.view(name, content, refuse, call)
  local view = newproxy(true)
  local meta = getmetatable(view)
  meta.__metatable = "read-only"
  meta.__index = function(_, key)
    local value = content[key]
    if value ~= nil then return value end
    local names = schema.sorted_keys(content)
    local elsewhere = other_names.hint(nil, name .. "." .. tostring(key))
    local near = schema.did_you_mean(key, names) or schema.same_beginning(tostring(key), names)
    refuse(key, ("no %s.%s"):format(name, tostring(key)),
      elsewhere or near and ("did you mean  %s?"):format(near) or "available: " .. table.concat(names, ", "))
  end
  meta.__newindex = function(_, key) refuse(key, ("%s.%s: %s is read-only"):format(name, tostring(key), name)) end
  meta.__tostring = function() return name end
  if call then meta.__call = function(_, ...) return call(...) end end
  meta.content = content   -- for completion; recipes cannot see it
  return view
end

local function picked(library, names)
  local out = {}
  for name in names:gmatch("%S+") do out[name] = library[name] end
  return out
end

-- Longer text than any recipe needs would only fill the memory.
local function safe_rep(text, count, separator)
  local function size(x) return (type(x) == "string" or type(x) == "number") and #tostring(x) or 0 end
  local times = tonumber(count)
  if times and (size(text) + size(separator)) * times > 2 ^ 24 then error("string.rep: more than 16 MiB of text", 2) end
  return string.rep(text, count, separator)
end

-- The functions of math, which accept symbols or say why not.
local function numbers()
  local out = picked(math, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min "
    .. "modf pi pow rad random randomseed sin sinh sqrt tan tanh")
  for name, fn in pairs(out) do
    if type(fn) == "function" then out[name] = operations.accepting("math." .. name, fn) end
  end
  return out
end

local function libraries(refuse)
  local text = picked(string, "byte char len lower rep reverse sub upper")
  for name, fn in pairs(native.strings) do text[name] = fn end   -- the watch can end these
  text.format, text.rep = safe_format, safe_rep
  local content = {
    string = text,
    math = numbers(),
    table = picked(table, "concat insert maxn remove sort"),
    bit = bit,
    coroutine = picked(coroutine, "create resume running status wrap yield"),
  }
  local views = {}
  for name, library in pairs(content) do views[name] = M.view(name, library, refuse) end
  return views, text
end

local kMaxChunk = 2 ^ 20   -- bytes, as of a recipe's file

local function safe_load(env, chunk, name)
  if type(chunk) ~= "string" or chunk:sub(1, 1) == "\27" then error("load: only text can be loaded", 2) end
  if #chunk > kMaxChunk then error("load: more than 1 MiB of text", 2) end
  if type(name) ~= "string" or name:find("^=") then name = "=(load)" end   -- names with = are the host's, which nothing stops
  local made, message = load(chunk, name, "t")
  if made then setfenv(made, env) end
  return made, message
end

local function list_of(x)
  local behind = node.behind(x)
  if not behind then return x end
  local out = {}
  for i in ipairs(behind.keys) do out[i] = x[i] end
  return out
end

local function functions(env, output)
  return {
    _VERSION = _VERSION, assert = assert, error = error, pcall = pcall, xpcall = xpcall, select = select, type = type,
    tonumber = operations.accepting("tonumber", tonumber), rawequal = rawequal, setmetatable = setmetatable,
    rawget = function(t, key)
      if strict_fields(t) then return t[key] end
      return rawget(t, key)
    end,
    rawset = function(t, key, value)
      if not strict_fields(t) then return rawset(t, key, value) end
      t[key] = value
      return t
    end,
    getmetatable = function(x)
      if type(x) ~= "table" then return nil end
      return getmetatable(x)
    end,
    ipairs = operations.accepting("ipairs", function(x) return ipairs(list_of(x)) end),
    unpack = operations.accepting("unpack", function(x, ...) return unpack(list_of(x), ...) end),
    pairs = operations.accepting("pairs", safe_pairs), next = operations.accepting("next", safe_next), tostring = safe_tostring,
    print = function(...)
      local out = {}
      for i = 1, select("#", ...) do out[i] = safe_tostring((select(i, ...))) end
      output(table.concat(out, "\t") .. "\n")
    end,
    load = function(chunk, name) return safe_load(env, chunk, name) end,
    loadstring = function(chunk, name) return safe_load(env, chunk, name) end,
  }
end

-- What modules that also run elsewhere look at: _G without the strictness, where what is not there is nil, and
-- debug, whose functions say that they are not available. Neither takes new fields.
local function tables_for_modules(content, refuse)
  local function refuse_field(name, why)
    return function(_, key) refuse(tostring(key), ("%s.%s cannot be written in a recipe: %s"):format(name, tostring(key), why)) end
  end
  local function not_available(_, key)
    if type(rawget(debug, key)) ~= "function" then return nil end
    return function() refuse(key, ("debug.%s is not available in a recipe: %s"):format(key, kNoDebug)) end
  end
  return setmetatable({}, { __metatable = "strict", __index = content, __newindex = refuse_field("_G", kNoGlobals) }),
    setmetatable({}, { __metatable = "strict", __index = not_available, __newindex = refuse_field("debug", kNoDebug) })
end

-- A fresh environment. `output` takes what print writes; `require_recipe` is the require of recipes.
function M.environment(output, require_recipe, refuse)
  local env = {}
  local content = functions(env, output)
  local views, text = libraries(refuse)
  for name, view in pairs(views) do content[name] = view end
  content.require = require_recipe
  content._G, content.debug = tables_for_modules(content, refuse)
  -- ("x"):format(...) takes the same way as string.format.
  local strings = debug.getmetatable("")
  strings.__index, strings.__metatable = text, "string"
  math.randomseed(17)
  return setmetatable(env, {
    __metatable = "strict",
    __names = content,   -- for completion; recipes cannot see it
    __index = function(_, name)
      local value = content[name]
      if value ~= nil then return value end
      if kWhyNot[name] then refuse(name, name .. " is not available in a recipe: " .. kWhyNot[name]) end
      if habits.names[name] then refuse(name, "undeclared name  " .. name, habits.names[name]) end
      local quoted = tostring(name):find "^\226\128[\152\153\156\157]"
      if quoted then refuse(name, "typographic quotes around a text", 'write  "..."  with plain quotes') end
      local near = schema.did_you_mean(name, schema.sorted_keys(content))
      refuse(name, "undeclared name  " .. tostring(name),
        near and ("did you mean  %s?"):format(near) or ("declare it first:  local %s = ..."):format(tostring(name)))
    end,
    __newindex = function(_, name)
      refuse(name, "global  " .. tostring(name) .. "  is written here",
        ("write  local %s = ...  instead"):format(tostring(name)))
    end,
  })
end

return M
