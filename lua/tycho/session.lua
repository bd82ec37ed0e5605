-- One load of one recipe: reads its files, runs it in the sandbox, and gives the resolved recipe or the
-- report.
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local pins = require "tycho.pins"
local recipe = require "tycho.recipe"
local report = require "tycho.report"
local sandbox = require "tycho.sandbox"
local serialize = require "tycho.serialize"
local site_of = require "tycho.site"

local Session = {}
Session.__index = Session

function Session:problem(problem) report.add(self.report, problem) end
function Session:problem_count() return #self.report.list end

-- Ends the recipe; what is wrong has been reported.
function Session:stop() error(self.stop_mark, 0) end

-- Reports at a name on the running line, then ends the recipe.
function Session:refuse(name, message, hint)
  self:problem(site_of.problem(site_of.of_name(self.sites, tostring(name)), "key", message, hint))
  self:stop()
end

-- Frames of recipe code, for --trace: one "file:line" each, innermost first.
local function user_frames(session)
  local out, level = {}, 3
  while true do
    local info = debug.getinfo(level, "Sln")
    if not info then return table.concat(out, "\n") end
    local file = info.source:match("^@(.*)$")
    local mine = file and session.sources[file]
    if mine or session.trace then
      out[#out + 1] = ("  from %s:%d%s"):format(mine and file or info.short_src, info.currentline,
        info.name and " in " .. info.name or "")
    end
    level = level + 1
  end
end

-- Turns what a recipe raised into a problem at the line that raised it. Errors of the host pass untouched.
local function on_error(session, raised)
  if raised == session.stop_mark then return raised end
  if type(raised) == "table" and raised.exit and raised.exit ~= native.exit_recipe then return raised end
  local file, line = site_of.caller(session.sites)
  local text = type(raised) == "table" and raised.message or tostring(raised)
  if file then text = text:gsub("^[^\n]-:" .. line .. ": ", "") end
  session:problem { file = file, line = line, message = text, trace = session.trace and user_frames(session) or nil }
  return session.stop_mark
end

local function report_syntax(session, file, message)
  local line, text = message:match(":(%d+): (.*)$")
  line = tonumber(line) or 1
  local index = lexer.index(session.sources[file])
  for l = line, math.max(1, line - 1), -1 do
    local token, advice = lexer.habit(index, l)
    if token then
      return session:problem { file = file, line = l, col = token.col, len = token.len, message = "not Lua",
        hint = advice }
    end
  end
  session:problem { file = file, line = line, message = "not Lua: " .. (text or message) }
end

-- Runs one source file in the sandbox and returns what it returns; a file that does not parse stops the
-- recipe.
local function run_file(session, file, text)
  session.sources[file] = text
  if text:sub(1, 1) == "\27" then
    session:problem { file = file, message = "this is Lua bytecode; a recipe is Lua text" }
    session:stop()
  end
  local chunk, message = loadstring((text:gsub("^#[^\n]*", "")), "@" .. file)
  if not chunk then
    report_syntax(session, file, message)
    session:stop()
  end
  return setfenv(chunk, session.env)()
end

local function folder_of(file) return file:match("^(.*/)[^/]*$") or "" end

-- require of recipes: "tycho", or a Lua file beside the requiring one, then under the working folder. Absent
-- files name the places tried; broken ones report their own line.
local function make_require(session)
  return function(name)
    if name == "tycho" then return session.t end
    local from = site_of.caller(session.sites) or session.file
    local relative = tostring(name):gsub("^%./", "")
    if not relative:find("/", 1, true) then relative = relative:gsub("%.lua$", ""):gsub("%.", "/") end
    relative = relative:gsub("%.lua$", "") .. ".lua"
    local tried = {}
    for _, file in ipairs { folder_of(from) .. relative, relative } do
      if session.loaded[file] ~= nil then
        if session.loaded[file] == session then
          session:refuse("require", ("%s is required by itself, through %s"):format(file, from))
        end
        return session.loaded[file]
      end
      local text = session.read_file(file)
      if text then
        session.loaded[file] = session
        local result = run_file(session, file, text)
        session.loaded[file] = result == nil and true or result
        return session.loaded[file]
      end
      tried[#tried + 1] = file
    end
    session:refuse("require", ("no recipe file \"%s\""):format(tostring(name)),
      "looked for " .. table.concat(tried, " and "))
  end
end

local function wrong_result(session, result)
  local text = session.sources[session.file]
  local last = select(2, text:gsub("\n", "")) + (text:sub(-1) == "\n" and 0 or 1)
  session:problem { file = session.file, line = last,
    message = ("the file returned %s, not a recipe"):format(result == nil and "nothing" or "a " .. type(result)),
    hint = 'end it with  return r  where  local r = t.recipe "name"' }
end

local function new_session(options)
  local session = setmetatable({
    schema = options.schema or native.schema, file = options.file, trace = options.trace,
    read_file = options.read_file or native.read_file,
    sources = {}, loaded = {}, environment = {}, report = report.new(), read_pin = pins.read,
    stop_mark = setmetatable({}, { __tostring = function() return "the recipe ended here" end }),
  }, Session)
  session.session = session
  session.sites = site_of.new(session.sources, session.file)
  session.t = require("tycho").new(session)
  session.env = sandbox.environment(options.output or native.output, make_require(session),
    function(...) return session:refuse(...) end)
  local tree, problems = pins.parse(session.schema, options.arguments or {})
  session.pins = tree
  for _, problem in ipairs(problems) do session:problem(problem) end
  return session
end

-- Calls fn; what recipe code raises in it becomes a problem, errors of the host go on. True and the result when it
-- came to its end.
local function guarded(session, fn)
  local ok, result = xpcall(fn, function(raised) return on_error(session, raised) end)
  if not ok and result ~= session.stop_mark then error(result, 0) end
  return ok, result
end

-- The recipe that the session's file makes, finished; nil when there is none. Everything wrong is in the report.
local function make_recipe(session, text, check_tree)
  local ok, result = guarded(session, function() return run_file(session, session.file, text) end)
  if not ok then return nil end
  local made = recipe.behind(result)
  if not made then return wrong_result(session, result) end
  guarded(session, function() recipe.finish(made, check_tree) end)
  return made
end

-- options: file, arguments = { { argument, text } }, trace; and what tests replace: read_file(path) -> text or nil and
-- message, schema, check_tree(tree) -> { { path, message } }, output(text). Returns { problems = count, report = text }
-- or, when there are none, tree, name, lua and history; sources and environment in both cases.
local function load(options)
  local session = new_session(options)
  local text, message = session.read_file(session.file)
  local made
  if text then
    made = make_recipe(session, text, options.check_tree or native.check_tree)
  else
    session:problem { message = message }
  end
  local result = { problems = session:problem_count(), sources = session.sources, environment = session.environment }
  if result.problems > 0 then
    result.report = report.text(session.report, session.sources, text and session.file)
  else
    result.tree, result.name, result.history = recipe.tree(made), made.name, serialize.history(made.history)
    result.lua = serialize.recipe(session.schema, result.tree, made.name)
  end
  return result
end

return { load = load }
