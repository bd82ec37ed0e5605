-- Specs: describe, it, expect, and what recipes and their callbacks are tried with. `tycho test FILE...` runs them.
local matchers = require "tycho.spec.matchers"
local native = require "tycho.native"
local recipe_of = require "tycho.recipe"
local session_of = require "tycho.session"
local site_of = require "tycho.site"

local M = {}

-- A recipe's file, or its text where the word has lines: what session.load and a fake run read.
local function request_of(word, arguments)
  if type(word) ~= "string" then
    error("expected the file or the text of a recipe, got " .. type(word) .. ': recipe("recipes/x.lua", "seed=3")', 3)
  end
  for _, one in ipairs(arguments) do
    if type(one) ~= "string" then error("expected arguments as the command line has them, got " .. type(one), 3) end
  end
  local is_text = word:find("\n", 1, true) ~= nil
  return { file = is_text and "spec.lua" or word, text = is_text and word or nil, arguments = arguments }
end

-- recipe("recipes/x.lua", "seed=3"): every key, as `tycho run` would have them. Raises the report of what is wrong.
local function resolved_recipe(word, ...)
  local request, numbered = request_of(word, { ... }), {}
  for i, text in ipairs(request.arguments) do numbered[i] = { argument = i, text = text } end
  local loaded = session_of.load { file = request.file, files = request.text and { [request.file] = request.text },
    arguments = numbered, quiet = true }
  if loaded.problems > 0 then error({ message = loaded.report }, 2) end
  return loaded.tree
end

local FakeRun = {}
FakeRun.__index = FakeRun

-- Takes what happened in a step or an event: commands, all metrics so far, events.
local function take(run, after)
  for _, command in ipairs(after.commands) do table.insert(run.commands, command) end
  run.metrics, run.events, run.steps = after.metrics, after.events, after.step
  return run
end

function FakeRun:step(numbers) return take(self, self.host.step(self.number, numbers or {})) end
function FakeRun:fire(event, numbers) return take(self, self.host.fire(self.number, event, numbers or {})) end
function FakeRun:state(name) return self.host.state(self.number)[name] end

-- fake_run("recipes/x.lua", "seed=3"): the callbacks of a recipe, in a run that trains nothing.
local function fake_run(word, ...)
  local host = require "tycho.fake_run.host"
  local run = { host = host, number = host.open(request_of(word, { ... })), commands = {}, metrics = {}, events = {}, steps = 0 }
  return setmetatable(run, FakeRun)
end

-- The t of a spec: recipes are built in the spec itself, and resolve(r) finishes them.
local function builder(file, text)
  local session = session_of.open { quiet = true }
  session.file, session.sources[file] = file, text   -- so that what is wrong is at a line of the spec
  local function resolve(r)
    local made = recipe_of.behind(r)
    if not made then error("resolve expects a recipe: local r = t.recipe \"x\" ... resolve(r)", 2) end
    local ok, result = pcall(session_of.finish, session, made)
    if ok then return result.tree end
    if session:problem_count() == 0 then error(result, 0) end
    local texts = {}
    local list = session.report.list
    session.report.list = {}   -- of the next recipe
    for i, problem in ipairs(list) do texts[i] = problem.message .. (problem.hint and "; " .. problem.hint or "") end
    error({ message = table.concat(texts, "\n") }, 2)
  end
  return session.t, resolve
end

local function own_require(t)
  return function(name)
    if name == "tycho" then return t end
    return require(name)
  end
end

-- Where modules of specs are: beside them, and where those of recipes are.
local function module_path(file)
  local places = { (file:match("^(.*/)[^/]*$") or "./"), "lua_modules/" }
  places[#places + 1] = site_of.path_of "~/.config/tycho/lua/"
  for folder in (native.env "TYCHO_PATH" or ""):gmatch "[^:]+" do places[#places + 1] = folder .. "/" end
  local out = {}
  for _, place in ipairs(places) do out[#out + 1] = place .. "?.lua;" .. place .. "?/init.lua" end
  return table.concat(out, ";")
end

-- The line of a spec file that is running, from the innermost frame on.
local function line_in(file)
  for level = 2, 250 do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.source == "@" .. file then return info.currentline end
  end
end

-- What is told of something that was raised: its text, and the frames of the spec below it.
local function failure_of(raised, file)
  if type(raised) == "table" and raised.message then return { message = raised.message, line = line_in(file) } end
  local text = tostring(raised)
  local line = text:match("^" .. file:gsub("%p", "%%%0") .. ":(%d+): ")
  return { message = line and text:gsub("^.-:%d+: ", "", 1) or text, line = tonumber(line) or line_in(file) }
end

local function indented(text) return "  " .. text:gsub("\n$", ""):gsub("\n", "\n  ") end

-- Runs spec files; say(text) prints. Returns how many passed and failed, and the failures as { file, line, name, message }.
function M.run(files, read_file, say)
  local passed, failures, names = 0, {}, {}
  local file
  local function fail(name, told)
    if type(told) ~= "table" then told = { message = tostring(told) } end   -- raised where no handler could run
    failures[#failures + 1] = { file = file, line = told.line, name = name, message = told.message }
    say(("FAILED  %s%s  %s\n%s\n"):format(file, told.line and ":" .. told.line or "", name, indented(told.message)))
  end
  local base = {
    expect = matchers.expect, recipe = resolved_recipe, fake_run = fake_run,
    describe = function(name, fn)
      names[#names + 1] = name
      fn()
      names[#names] = nil
    end,
    it = function(name, fn)
      local ok, told = xpcall(fn, function(raised) return failure_of(raised, file) end)
      if ok then passed = passed + 1 else fail(((table.concat(names, " ") .. " " .. name):gsub("^ ", "")), told) end
    end,
  }
  for _, one in ipairs(files) do
    file = one
    local text = assert(read_file(file))
    package.path = module_path(file)
    local chunk, message = loadstring(text, "@" .. file)
    if chunk then
      local world = setmetatable({}, { __index = function(_, name)
        if (name == "require" or name == "resolve") and not base.require then   -- made when a spec wants them: a session costs milliseconds
          local t, resolve = builder(file, text)
          base.require, base.resolve = own_require(t), resolve
        end
        if base[name] ~= nil then return base[name] end
        return _G[name]
      end })
      base.require, base.resolve = nil, nil
      setfenv(chunk, world)
      local ok, told = xpcall(chunk, function(raised) return failure_of(raised, file) end)
      if not ok then fail("could not be read to its end", told) end
    else
      fail("is not Lua", { message = message })
    end
  end
  return passed, failures
end

-- The door for C++: request.files, each a spec file.
function M.main(request)
  local passed, failures = M.run(request.files, native.read_file, native.output)
  return { passed = passed, failed = #failures, failures = native.array(failures) }
end

return M
