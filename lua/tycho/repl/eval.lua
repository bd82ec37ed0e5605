-- Runs one entry: expression or statements, with what went wrong kept for :bt and :locals.
local errors = require "tycho.errors"
local habits = require "tycho.hints.habits"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local report = require "tycho.report"
local rewrite = require "tycho.repl.rewrite"
local site_of = require "tycho.site"
local stack = require "tycho.frames"

local M = {}

local kFile = "stdin"
local kPlain = { E_RECIPE = true, E_FAILURE = true }   -- codes that say nothing

local function ends_early(message)
  return message:find("near '<eof>'", 1, true) and not message:find("unfinished string", 1, true)
end

-- Line numbers of stdin count from the start of the prompt.
-- As text only: bytecode can do anything to the process.
local function compile(text, first_line, file) return load(("\n"):rep(first_line - 1) .. text, "@" .. file, "t") end

local function without_first(_, ...) return ... end

local function counting(counted, variables)
  setfenv(counted, variables)
  return function() return without_first(counted()) end
end

-- The function of an entry that runs with `variables`; nil, a message, and whether more lines could complete it. `file`: what
-- places in errors call it; stdin by default.
function M.compile(text, first_line, variables, file)
  file = file or kFile
  if text:sub(1, 1) == "\27" then return nil, "this is Lua bytecode; an entry is Lua text" end
  local as_value, value_message = compile("return " .. text, first_line, file)
  if as_value then
    -- `return f()` would be a tail call, and the entry no longer on the stack when f fails.
    local counted = compile("return nil, " .. text, first_line, file)
    if not counted then return as_value end   -- "return " alone: no value
    return counting(counted, variables)
  end
  local as_statements, message = compile(rewrite.persist(text), first_line, file)
  local head, tail = rewrite.split_last(text)
  local with_value = head and compile(rewrite.persist(head) .. "return nil, " .. tail, first_line, file)
  if with_value then return counting(with_value, variables) end
  if as_statements then return setfenv(as_statements, variables) end
  return nil, message, (ends_early(message) or ends_early(value_message)) and true or false
end

-- True when the text is the beginning of an entry.
function M.is_incomplete(text)
  local fn, _, more = M.compile(text, 1, {})
  return not fn and more
end

local function kept_local(name, value) return { name = name, value = value } end

-- The token that a message is about: the member that an object refused, or what Lua names.
local function token_of(session, file, line, message, given)
  local index = file and session.sources[file] and site_of.index(session.sites, file)
  if not index then return nil end
  if given then
    local member = message:match("^[%a_]+[:%.]([%a_][%w_]*)") or message:match("has no ([%a_][%w_]*)")
      or message:match("read%-only: ([%a_][%w_]*)")
    return member and lexer.name(index, line, member)
  end
  return habits.at_run(index, line, message)
end

-- The problem that a raised value stands for, and the frames where it was raised.
local function problem_of(session, raised, frames)
  local top = frames[1] or {}
  local given = type(raised) == "table" and raised.message
  local message = errors.text(raised)
  local file, line = top.file, top.line
  if not given then
    local at_file, at_line, rest = message:match("^([^\n:]+):(%d+): (.*)$")
    if at_file then file, line, message = at_file, tonumber(at_line), rest end
  end
  local token, hint = token_of(session, file, line, message, given)
  local code = given and raised.code and not kPlain[raised.code] and message == given and raised.code .. "  " or ""
  if given and native.exit_of(raised) == native.exit_interrupted then return { message = " " .. message } end   -- behind the terminal's ^C
  return { file = file, line = line, col = token and token.col, len = token and token.len,
    message = code .. message, hint = given and raised.hint or hint }
end

local function place_of(problem) return problem and { file = problem.file, line = problem.line, column = problem.col } end

-- Calls fn. True and its results, packed; false and { text, place, frames, exit } otherwise.
function M.run(session, fn)
  session.report, session.warnings = report.new(), report.new()
  local frames
  local results = { n = 0 }
  local function pack(...) results = { n = select("#", ...), ... } end
  local ok, raised = xpcall(function() pack(fn()) end, function(raised)
    frames = stack.from(3, kept_local)
    return raised
  end)
  if ok and session:problem_count() == 0 then return true, results end
  if not ok and raised ~= session.stop_mark then session:problem(problem_of(session, raised, frames or {})) end
  local code = native.exit_of(raised) or native.exit_recipe
  return false, { text = report.entries(session.report, session.sources), place = place_of(session.report.list[1]),
    frames = frames or {}, exit = code }
end

-- A problem for an entry that does not compile.
function M.syntax_problem(session, message)
  local line, text = message:match(":(%d+): (.*)$")
  line = tonumber(line)
  local token, hint
  local index = line and site_of.index(session.sites, kFile)
  if index then token, hint = habits.at_load(index, line) end
  if index and not token then token, hint = habits.missing_comma(index, line, text) end
  return { file = kFile, line = line, col = token and token.col, len = token and token.len, hint = hint,
    message = "not Lua: " .. (text or message) }
end

return M
