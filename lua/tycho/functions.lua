-- Functions as values of a recipe: they are part of a run's identity, so each has a hash.
local native = require "tycho.native"
local schema

local M = {}

local kMaxDepth = 8
local Ref = { __metatable = "function" }
-- Environment -> the session whose code has it. A session refers to its environment, so a strong value would keep
-- both for ever; the environment keeps the session alive by its require.
local sessions = setmetatable({}, { __mode = "kv" })

-- Functions made in this environment belong to this session.
function M.register(env, session) sessions[env] = session end

function M.is(x) return debug.getmetatable(x) == Ref end

local lines_of = setmetatable({}, { __mode = "k" })   -- session -> text -> its lines without the blanks around them

-- Split once for all functions of a text: a recipe may have a thousand.
local function split(session, text)
  local known = lines_of[session] or {}
  lines_of[session] = known
  if known[text] then return known[text] end
  local lines = {}
  for one in (text .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = one:match("^%s*(.-)%s*$") end
  known[text] = lines
  return lines
end

-- The lines that a function stands on, and where; nil for one that no recipe file wrote.
local function text_of(fn)
  local info, session = debug.getinfo(fn, "S"), sessions[debug.getfenv(fn)]
  local file = info.source:match("^@(.*)$")
  local text = session and file and session.sources[file]
  if not text then return nil end
  local lines = split(session, text)
  return table.concat(lines, "\n", info.linedefined, math.min(info.lastlinedefined, #lines)),
    ("%s:%d"):format(file, info.linedefined)
end

local describe   -- of any value, below

local function describe_table(x, seen, depth)
  if seen[x] then return "again" end
  seen[x] = true
  if depth > kMaxDepth then return "deep" end
  schema = schema or require "tycho.schema"
  local out = {}
  for _, key in ipairs(schema.sorted_keys(x)) do
    out[#out + 1] = tostring(key) .. "=" .. describe(x[key], seen, depth + 1)
  end
  return "{" .. table.concat(out, ",") .. "}"
end

local function describe_function(fn, seen, depth)
  if seen[fn] then return "again" end
  seen[fn] = true
  local out = { text_of(fn) or "native" }
  for i = 1, 60 do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    out[#out + 1] = name .. "=" .. describe(value, seen, depth + 1)
  end
  return table.concat(out, "\n")
end

function describe(x, seen, depth)
  local kind = type(x)
  if kind == "number" then return native.number_text(x) end
  if kind == "string" then return ("%q"):format(x) end
  if kind == "function" then return describe_function(x, seen, depth) end
  if kind == "table" and not getmetatable(x) then return describe_table(x, seen, depth) end
  return kind == "boolean" and tostring(x) or kind
end

-- A text that two functions share when they do the same: their lines, and the data and functions that they close over.
function M.identity(fn) return describe(fn, {}, 1) end

-- A function as a recipe keeps it; nil and a message.
function M.keep(fn)
  if M.is(fn) then return fn end
  if type(fn) ~= "function" then return nil, "expected a function, such as  function(ctx) ... end" end
  local _, at = text_of(fn)
  if not at then return nil, "expected a function written in a recipe file" end
  return setmetatable({ fn = fn, at = at, hash = native.hash(M.identity(fn)) }, Ref)
end

-- A kept function of which only what it computes is used.
function M.with_expression(ref, expression)
  return setmetatable({ fn = ref.fn, at = ref.at, hash = ref.hash, expression = expression }, Ref)
end

-- A kept function as plain data.
function M.data(ref)
  local code = { at = ref.at, hash = ref.hash }
  return ref.expression and { expression = ref.expression, code = code } or code
end

return M
