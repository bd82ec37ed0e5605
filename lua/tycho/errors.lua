-- Texts of errors, and raising and catching errors in recipes: t.fail, t.try.
local native = require "tycho.native"
local show = require "tycho.repl.show"

local M = {}

-- LuaJIT's messages and our replacements: LuaJIT's refer to internals of the host.
local kYield = "attempt to yield across C-call boundary"
local kYieldHere = "coroutine.yield returns to coroutine.resume, but nothing resumed this: a function that Tycho calls "
  .. "must run to its end; keep what you need later in its state"

-- Whether this is an error of Tycho's own that no recipe may catch or report as its problem. What a recipe raises is
-- never one, whatever fields it has.
function M.ends_run(raised)
  local exit = native.exit_of(raised)
  return exit ~= nil and exit ~= native.exit_recipe
end

local Own = { __tostring = function(raised) return raised.code .. "  " .. raised.message end, __metatable = "error" }

local kMaxText = 16384   -- bytes of a message: longer ones are for nobody

local function cut(text) return #text <= kMaxText and text or text:sub(1, kMaxText) .. "..." end

-- Without addresses: they differ from run to run. What t.fail raises begins with its code.
function M.text(raised)
  if debug.getmetatable(raised) == Own then return cut(tostring(raised)) end
  if type(raised) == "table" and type(raised.message) == "string" then return cut(raised.message) end
  if type(raised) == "string" then
    raised = cut(raised)
    local at = raised:find(kYield, 1, true)
    return at and raised:sub(1, at - 1) .. kYieldHere .. raised:sub(at + #kYield) or raised
  end
  return "error was called with  " .. show.brief(raised)
end

-- file:line of a function on the stack, or nil.
local function place(level)
  local info = debug.getinfo(level + 1, "Sl")
  return info and info.source:sub(1, 1) == "@" and ("%s:%d"):format(info.source:sub(2), info.currentline) or nil
end

local function fail(session)
  return function(code, text, ...)
    if type(code) ~= "string" or not code:find("^E_[%u%d_]+$") or type(text) ~= "string" then
      session:refuse("fail", 't.fail expects a code and a text: t.fail("E_DATA", "no file %s", name)')
    end
    local message = select("#", ...) > 0 and session.env.string.format(text, ...) or text
    error(native.with_exit(setmetatable({ code = code, message = message, where = place(2) }, Own), native.exit_recipe), 0)
  end
end

-- Anything that was raised as an error object: { code, message, where }.
local function as_object(raised)
  if type(raised) == "table" and type(raised.message) == "string" then return raised end
  local text = M.text(raised)
  local where, message = text:match "^([^\n:]+:%d+): (.*)$"
  return { code = "E_FAILURE", message = message or text, where = where, value = type(raised) ~= "string" and raised or nil }
end

-- The result of a function; errors already in the report, and those that end the run, are not caught.
local function outcome(session, ok, ...)
  if ok then return true, ... end
  local raised = ...
  if raised == session.stop_mark or M.ends_run(raised) then error(raised, 0) end
  return false, as_object(raised)
end

function M.functions(session)
  return {
    fail = fail(session),
    try = function(fn, ...)
      if type(fn) ~= "function" then session:refuse("try", "t.try expects a function: local ok, result = t.try(fn, ...)") end
      return outcome(session, pcall(fn, ...))
    end,
  }
end

return M
