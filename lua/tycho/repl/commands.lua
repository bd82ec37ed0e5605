-- Commands of the REPL: words behind a colon.
local eval = require "tycho.repl.eval"
local host = require "tycho.repl.host"
local native = require "tycho.native"
local recipe = require "tycho.recipe"
local report = require "tycho.report"
local schema = require "tycho.schema"
local session_of = require "tycho.session"
local show = require "tycho.repl.show"

local M = {}

local kBenchSeconds, kBenchMost = 0.5, 1000

local list = {}       -- name -> { usage, help, run }
local order = {}

local function command(name, usage, text, run)
  list[name] = { usage = usage, help = text, run = run }
  order[#order + 1] = name
end

function M.names() return schema.sorted_keys(list) end

function M.help_of(name)
  local one = list[name]
  return one and (":%s  %s"):format(one.usage, one.help)
end

function M.overview()
  local out = {}
  for i, name in ipairs(order) do out[i] = ("  :%-18s %s"):format(list[name].usage, list[name].help) end
  return table.concat(out, "\n")
end

-- Says that a command cannot do what was asked.
local function refuse(text)
  host.print(text .. "\n")
  return "error", native.exit_usage
end

-- The recipe as it would be built; nil and why not.
local function finished(repl)
  if not repl.draft then return nil, "there is no recipe: start with  tycho repl RECIPE" end
  local result = repl:resolved()
  if result then return result end
  return nil, (report.entries(repl.session.report, repl.session.sources):gsub("\n$", ""))
end

command("why", "why KEY", "Who set a key of the recipe to which values.", function(repl, path)
  local text, message = repl:why(path)
  if not text then return refuse(message) end
  repl:say(text)
end)

command("plan", "plan", "What the run will take: memory, FLOPs, steps.", function(repl)
  local result, message = finished(repl)
  if not result then return refuse(message) end
  repl:say(host.plan_text(result.tree))
end)

-- `around`, when given, calls the function that it is given.
local function timed(repl, text, times, around)
  local fn, message = eval.compile(text, repl.lines + 1, repl.vars)
  if not fn then return refuse(message) end
  local seconds, results = {}, nil
  local ok, failure = eval.run(repl.session, function()
    local begun = host.now()
    repeat
      local start = host.now()
      results = { n = 0 }
      local function pack(...) results = { n = select("#", ...), ... } end
      local function run() pack(fn()) end
      if around then around(run) else run() end
      seconds[#seconds + 1] = host.now() - start
      host.boundary()
    until #seconds >= times or host.decide(host.now() - begun > kBenchSeconds)
  end)
  if not ok then return repl:fail(failure) end
  return nil, seconds, results
end

command("time", "time EXPR", "Runs an expression once and prints the time.", function(repl, text)
  local status, seconds, results = timed(repl, text, 1)
  if status then return status, seconds end
  for i = 1, results.n do repl:say(show.value(results[i])) end
  host.print(("%.4g s\n"):format(seconds[1]))
end)

command("bench", "bench EXPR", "Runs an expression for half a second: mean, minimum and maximum time.", function(repl, text)
  local status, seconds = timed(repl, text, kBenchMost)
  if status then return status, seconds end
  table.sort(seconds)
  local sum = 0
  for _, one in ipairs(seconds) do sum = sum + one end
  host.print(("%d times: mean %.4g s, median %.4g s, min %.4g s, max %.4g s\n"):format(#seconds, sum / #seconds,
    seconds[math.ceil(#seconds / 2)], seconds[1], seconds[#seconds]))
end)

local kMostRanges = 16

-- What took longest, and where the trace is.
local function profile_text(profile)
  local out = {}
  for i, range in ipairs(profile.ranges) do
    if i > kMostRanges then break end
    out[i] = ("  %10.3f ms  %5d x  %s"):format(1e3 * range.seconds, range.calls, range.name)
  end
  out[#out + 1] = ("  trace: %s   (https://ui.perfetto.dev or chrome://tracing opens it)"):format(profile.path)
  return table.concat(out, "\n")
end

command("prof", "prof EXPR", "Runs an expression once and records a trace: what took longest, and where the trace is.",
  function(repl, text)
    local profile
    local status, code, results = timed(repl, text, 1, function(run)
      host.profile_begin()
      local ok, raised = pcall(run)
      profile = host.profile_end()
      if not ok then error(raised, 0) end
    end)
    local out = {}
    for i = 1, status and 0 or results.n do out[i] = show.value(results[i]) end
    if profile then out[#out + 1] = profile_text(profile) end
    if #out > 0 then repl:say(table.concat(out, "\n")) end
    if status then return status, code end
  end)

command("mem", "mem", "Memory of the device, of Lua, and of kept tensors.", function(repl)
  local mem = rawget(repl.vars, "mem")
  if mem ~= nil and host.class_of(mem) == "mem" then repl:say(tostring(mem))
  else repl:say(("lua %.1f MB   no run is open"):format(host.memory().lua / 1e6)) end
end)

-- Bytes that hang on a value, roughly: tables and texts, each once.
local function weight(value, seen)
  if type(value) == "string" then return #value + 24 end
  if type(value) ~= "table" or seen[value] then return 0 end
  seen[value] = true
  local sum = 40
  for key, item in next, value do sum = sum + 32 + weight(key, seen) + weight(item, seen) end
  return sum
end

command("heap", "heap", "Lua's memory, handles, and the largest names.", function(repl)
  local memory = host.memory()
  local out = { ("lua %.2f MB, kept tensors %.2f MB, %d handles"):format(memory.lua / 1e6, memory.tensors / 1e6,
    memory.handles) }
  local rows = {}
  for name, value in next, repl.vars do
    if not repl.given[name] then rows[#rows + 1] = { name = name, bytes = weight(value, {}) } end
  end
  table.sort(rows, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.name < b.name
  end)
  for i = 1, math.min(10, #rows) do out[#out + 1] = ("  %-20s %d bytes"):format(rows[i].name, rows[i].bytes) end
  repl:say(table.concat(out, "\n"))
end)

local function flat(tree, path, out)
  for key, value in pairs(tree or {}) do
    local name = schema.join(path, key)
    if type(value) == "table" then flat(value, name, out) else out[name] = schema.literal(value) end
  end
  return out
end

-- What differs between two trees, a line for each key; "nothing" when they are alike.
local function changes_text(before, after, nothing)
  local old, new, out = flat(before, "", {}), flat(after, "", {}), {}
  for _, path in ipairs(schema.sorted_keys(setmetatable(new, nil))) do
    if old[path] ~= new[path] then out[#out + 1] = ("  %s  %s -> %s"):format(path, old[path] or "(not set)", new[path]) end
  end
  for _, path in ipairs(schema.sorted_keys(old)) do
    if new[path] == nil then out[#out + 1] = ("  %s  %s -> (not set)"):format(path, old[path]) end
  end
  return #out == 0 and nothing or table.concat(out, "\n")
end

command("reload", "reload", "Reads the recipe's files again and says what changed.", function(repl)
  if not repl.file then return refuse("there is no file to read again: start with  tycho repl RECIPE") end
  local before = repl:resolved()
  local said, whole = repl:load()
  repl:say(said)
  if not whole then return "error", native.exit_recipe end
  local after = repl:resolved()
  if not before or not after then return end
  repl:say(changes_text(before.tree, after.tree, "nothing changed"))
  if rawget(repl.vars, "trainer") ~= nil then repl:say("the open run keeps its recipe: trainer:close(), then build(r)") end
end)

-- The tree of a recipe file, or of the prompt's own recipe for nil; nil and why not.
local function tree_of(repl, file)
  if not file then
    local result, message = finished(repl)
    return result and result.tree, message
  end
  local session, made = session_of.run { file = file, output = host.print }
  if made and session:problem_count() == 0 then return recipe.tree(made) end
  return nil, (report.entries(session.report, session.sources):gsub("\n$", ""))
end

command("diff", "diff [A] B", "Keys that differ between two recipe files, or between this recipe and one.", function(repl, files)
  local a, b = files:match("^(%S+)%s+(%S+)$")
  b = b or files:match("^(%S+)$")
  if not b then return refuse(":diff expects a recipe to compare this one with, or two:  :diff recipes/x.lua") end
  local before, message = tree_of(repl, a)
  local after
  if before then after, message = tree_of(repl, b) end
  if not after then return refuse(message) end
  repl:say(changes_text(before, after, "nothing differs"))
end)

command("save", "save FILE", "Writes the current recipe to a new file, with the entries that led to it as comments.", function(repl, file)
  if file == "" then return refuse(":save expects the name of a file:  :save recipes/tryout.lua") end
  local result, why_not = finished(repl)
  if not result then return refuse(why_not) end
  local out = { result.lua, "\n-- The entries that led to it:\n" }
  for _, entry in ipairs(repl.entries) do out[#out + 1] = "--   " .. entry:gsub("\n", "\n--   ") .. "\n" end
  local message = host.write_new_file(file, table.concat(out))
  if message ~= "" then return refuse(message) end
  repl:say("wrote " .. file)
end)

local function place_of(frame)
  return ("%s:%d%s"):format(frame.file, frame.line, frame.name and " in " .. frame.name or "")
end

-- The frame that a command is about; nil after saying why there is none.
local function frame_of(repl, number)
  if not repl.failure then return nil, refuse("there was no error") end
  local frame = repl.failure.frames[number == "" and repl.frame or tonumber(number)]
  if not frame then return nil, refuse("there is no such frame; :bt lists them") end
  return frame
end

local function locals_text(frame)
  local out = {}
  for i, one in ipairs(frame.locals) do out[i] = ("  %s = %s"):format(one.name, one.text or show.brief(one.value)) end
  return #out == 0 and "  it has no locals" or table.concat(out, "\n")
end

-- The line of a file that was read; "" for another.
local function source_line(repl, frame)
  local text, number = repl.session.sources[frame.file], 0
  for line in (text or ""):gmatch("([^\n]*)\n?") do
    number = number + 1
    if number == frame.line then return ("  %5d | %s\n"):format(number, line) end
  end
  return ""
end

command("bt", "bt", "Where the newest error was raised, innermost first.", function(repl)
  if not repl.failure then return refuse("there was no error") end
  local out = {}
  for i, frame in ipairs(repl.failure.frames) do
    out[i] = ("%s %d  %s"):format(i == repl.frame and ">" or " ", i, place_of(frame))
  end
  if #out == 0 then out[1] = "  it was raised outside of Lua functions" end
  if repl.num_ranks > 1 and #repl.failure.frames == 0 then out[1] = out[1] .. ", or on another rank:  @1 :bt" end
  repl:say(table.concat(out, "\n"))
end)

command("frame", "frame N", "Selects a frame of :bt: shows its line and locals, also as the table `locals`.",
  function(repl, number)
    local frame = frame_of(repl, number)
    if not frame then return "error", native.exit_usage end
    repl.frame = number == "" and repl.frame or tonumber(number)
    local values = {}
    for _, one in ipairs(frame.locals) do values[one.name] = one.value == nil and one.text or one.value end
    repl.vars.locals = values
    repl:say(("  %d  %s\n"):format(repl.frame, place_of(frame)) .. source_line(repl, frame) .. locals_text(frame))
  end)

command("locals", "locals [N]", "Locals of the selected frame, or of frame N of :bt.", function(repl, number)
  local frame = frame_of(repl, number)
  if not frame then return "error", native.exit_usage end
  repl:say(locals_text(frame))
end)

command("e", "e", "Shows the newest error again.", function(repl)
  if not repl.failure then return refuse("there was no error") end
  repl:say(repl.failure.text)
end)

command("who", "who", "Names defined at this prompt.", function(repl)
  local out = {}
  for _, name in ipairs(schema.sorted_keys(repl.vars)) do
    if not repl.given[name] and not name:find("^_%d*$") then
      local value = rawget(repl.vars, name)
      out[#out + 1] = ("  %-16s %-9s %s"):format(name, host.class_of(value) or type(value), show.brief(value))
    end
  end
  repl:say(#out == 0 and "  nothing is defined yet" or table.concat(out, "\n"))
end)

command("history", "history [TEXT]", "Entries made in this folder that contain TEXT, newest last.", function(repl, text)
  repl:say(host.history(text))
end)

command("log", "log FILE", "Writes all entries to a new file, as a script for  tycho repl < FILE.", function(repl, file)
  if file == "" then return refuse(":log expects the name of a file") end
  local message = host.write_new_file(file, table.concat(repl.entries, "\n") .. "\n")
  if message ~= "" then return refuse(message) end
  repl:say("wrote " .. file)
end)

command("doctor", "doctor", "Checks this machine, like `tycho doctor`.", function()
  host.shell(("'%s' doctor"):format(host.program))
end)

command("more", "more", "Shows what did not fit on the screen.", function(repl)
  if not repl.rest then return refuse("there is nothing more") end
  repl:say(repl.rest)
end)

command("help", "help [NAME]", "The same as ?NAME.", function(repl, name)
  repl:say(require("tycho.repl.help").of_text(repl, name))
end)

command("quit", "quit", "Leaves the prompt, like ^D.", function() return "quit" end)

-- Runs "why optimizer.lr". "ok", "quit", or "error" and an exit code.
function M.run(repl, text)
  local name, rest = text:match("^%s*(%a*)%s*(.-)%s*$")
  local one = list[name]
  if not one then
    local near = schema.did_you_mean(name, M.names())
    return refuse(("no command :%s%s"):format(name, near and ("; did you mean :%s?"):format(near) or "; :help lists them"))
  end
  local status, code = one.run(repl, rest)
  return status or "ok", code
end

return M
