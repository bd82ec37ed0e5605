-- The REPL: a recipe that can be written, a run that can be opened, and one entry after the other. What needs a terminal,
-- a file or the engine comes from the host (`tycho.repl.host`).
local commands = require "tycho.repl.commands"
local complete = require "tycho.repl.complete"
local draw = require "tycho.repl.draw"
local eval = require "tycho.repl.eval"
local help = require "tycho.repl.help"
local history = require "tycho.history"
local host = require "tycho.repl.host"
local native = require "tycho.native"
local node = require "tycho.node"
local running = require "tycho.running"
local schema = require "tycho.schema"
local session_of = require "tycho.session"
local show = require "tycho.repl.show"
local show_config = require "tycho.show"

local kShownSeconds = 0.1    -- results that took longer say so
local kRunObjects = { trainer = true, model = true, opt = true, sched = true, data = true, ckpt = true, log = true,
  mem = true, profile = true, cmd = true }

local kOfCtx = { "model", "opt", "sched", "data", "ckpt", "log", "mem", "profile" }   -- what a callback's ctx has of them

local Repl = {}
Repl.__index = Repl

-- Prints a text; the part that does not fit on the screen is kept for :more.
function Repl:say(text)
  if text == "" then return end
  if text:sub(-1) ~= "\n" then text = text .. "\n" end
  local rows = self.interactive and host.screen().rows - 2 or math.huge
  local count, cut = 0, nil
  for at in text:gmatch("\n()") do
    count = count + 1
    if count == rows and at <= #text then cut = at break end
  end
  self.rest = cut and text:sub(cut) or nil
  host.print(cut and text:sub(1, cut - 1) or text)
  if cut then
    host.print(("  -- %d more lines:  :more\n"):format(select(2, self.rest:gsub("\n", ""))))
  end
end

-- Values of names defined at the prompt; undeclared ones are rejected as in recipes.
local function new_variables(self)
  local declared = {}
  local function read(_, name)
    if declared[name] then return nil end
    if kRunObjects[name] then
      self.session:refuse(name, ("there is no %s yet"):format(name), "trainer = build(r)  opens the run")
    end
    return self.session.env[name]
  end
  return setmetatable({}, { __index = read, __metatable = "session", __newindex = function(vars, name, value)
    declared[name] = true
    rawset(vars, name, value)
  end })
end

-- Arguments have acted on the draft; from here on what is typed wins.
local function release_pins(at)
  at.pins = { children = {} }
  for _, key in ipairs(at.keys) do
    if at.state[key] == "pinned" then at.state[key] = "set" end
    local value = at.values[key]
    if type(value) == "table" and value.proxy then release_pins(value) end
  end
end

-- Reads the recipe again, or for the first time. What there is to say of it, "" for nothing; false when something is wrong.
function Repl:load()
  local session, said = session_of.open { file = self.file, arguments = self.arguments, files = self.files,
    only_files = self.only_files, made_from = self.made_from, output = host.print }
  session.sources.stdin = self.typed ~= "" and self.typed or nil
  self.session, self.draft = session, session.draft
  if self.draft then release_pins(self.draft.root) end
  self.vars.t, self.vars.r = session.t, self.draft and self.draft.root.proxy
  if said ~= "" and said:sub(-1) ~= "\n" then said = said .. "\n" end
  return said, session:problem_count() == 0
end

-- The draft as it would be built: tree, hash and facts; nil while something is missing.
function Repl:resolved()
  if not self.draft then return nil end
  local result
  local ok = eval.run(self.session, function() result = session_of.finish(self.session, self.draft) end)
  return ok and result or nil
end

-- The open run's objects become names at the prompt.
function Repl:bind(objects, recipe)
  running.recipe = recipe or self.draft
  self.run_dir, self.open_trainer = objects.trainer.dir, objects.trainer
  self.built, self.built_writes = running.recipe, running.recipe and running.recipe.writes
  for name, object in pairs(objects) do self.vars[name] = object end
  return objects.trainer
end

local function build(self, recipe)
  local behind = recipe == nil and self.draft or require("tycho.recipe").behind(recipe)
  if not behind then self.session:refuse("build", "build expects a recipe: build(r)") end
  return self:bind(host.build(session_of.finish(self.session, behind)), behind)
end

-- A run that is open keeps the recipe that it was built from.
local function note_unused_writes(self)
  if not self.built or self.built.writes == self.built_writes then return end
  self.built_writes = self.built.writes
  if pcall(function() return self.open_trainer.dir end) then
    host.print("note: the open run keeps the recipe that it was built from; trainer:close(), then build(r), uses what is "
      .. "set now\n")
  end
end

local function add_functions(self)
  local vars = self.vars
  vars.build = function(recipe) return build(self, recipe) end
  vars.plot = function(...) return self:say(draw.plot(host.metrics_path, ...)) end
  vars.hist = function(...) return self:say(draw.histogram(...)) end
  -- Texts as they are, all else as an expression shows it.
  vars.print = function(...)
    local out = {}
    for i = 1, select("#", ...) do
      local value = select(i, ...)
      out[i] = type(value) == "string" and value or show.value(value)
    end
    host.print(table.concat(out, "\t") .. "\n")
  end
  vars.help = function(value) return self:say(help.of_value(self, value)) end
  self.given = {}   -- names that :who leaves out
  for name in pairs(vars) do self.given[name] = true end
  for name in pairs(kRunObjects) do self.given[name] = true end
end

local function banner(self)
  local result = self:resolved()
  if not result then return "" end
  local facts = native.facts(result.tree)
  local steps = facts.steps ~= native.null and ("%d ba"):format(facts.steps) or "data does not exist yet"
  return ("recipe %s  hash %s  %d parameters  %s   not built yet\n"):format(result.name, host.hash(result.tree):sub(1, 8),
    facts.num_params, steps)
end

-- options: file or nil, arguments, files, interactive, num_ranks, apart (the host shows values and failures itself),
-- classes (name -> class, of objects that are not here: those of a run elsewhere). Returns the REPL, its first text, and
-- whether the recipe is valid: a user can fix it at the prompt, a script ends.
local function new(options)
  local self = setmetatable({ file = options.file, arguments = options.arguments, files = options.files,
    only_files = options.only_files, made_from = options.made_from, interactive = options.interactive,
    num_ranks = options.num_ranks, apart = options.apart, classes = options.classes or { ctx = "control_ctx" }, typed = "", lines = 0, entries = {}, told = {} }, Repl)
  self.vars = new_variables(self)
  local text, whole = self:load()
  add_functions(self)
  if self.interactive and self.file and self.draft and text == "" then text = banner(self) end
  return self, text, whole
end

function Repl:keep_results(results)
  for i = 1, results.n do self.vars["_" .. i] = results[i] end
  self.vars._ = results[1]
end

-- What an expression gave, but for nothing at all; a `;` at the end of the entry keeps it silent.
local function print_results(self, results, text)
  if results.n == 0 then return end
  self:keep_results(results)
  if text:find(";%s*$") then return end
  local out = {}
  local name = text:match("^%s*([%a_][%w_]*)%s*$")
  for i = 1, results.n do
    out[i] = show.value(results[i])
    -- A tensor does not know what it is called here.
    if name and host.class_of(results[i]) == "tensor" then
      out[i] = out[i]:gsub("%(value%):show%(rows%)", name .. ":show(rows)")
    end
  end
  local shown = table.concat(out, "\n")
  self.told.value, self.told.shown = shown, show.without_times(shown)
  if not self.apart then self:say(shown) end
end

-- Adds an entry to the lines of stdin: line numbers go on over the whole session.
local function remember(self, text)
  local first_line = self.lines + 1
  self.typed = self.typed .. text .. "\n"
  self.lines = self.lines + 1 + select(2, text:gsub("\n", ""))
  self.session.sources.stdin, self.session.sites.indexes.stdin = self.typed, nil
  return first_line
end

-- The failure of a callback that ended a run: its frames come before those of the entry, and its ctx becomes a name at the
-- prompt.
local function take_callback_failure(self, failure)
  if not failure.text:find("[callback]", 1, true) then return end
  local inner = host.take_failure()
  if inner == native.null then return end
  local frames = inner.frames
  for _, frame in ipairs(failure.frames) do frames[#frames + 1] = frame end
  failure.frames = frames
  for _, name in ipairs(kOfCtx) do inner.ctx[name] = rawget(self.vars, name) end
  self.vars.ctx = inner.ctx
end

-- Makes a failure the one that :bt, :frame and :locals are about. "error" and its exit code.
function Repl:fail(failure)
  take_callback_failure(self, failure)
  self.failure, self.frame = failure, 1
  self.told.failure, self.told.place = failure.text, failure.place
  if not self.apart then host.print(failure.text) end
  return "error", failure.exit
end

-- What failed on another rank is the newest error, too; where is known there.
function Repl:failed_elsewhere(text)
  self.failure, self.frame = { text = text, frames = {}, exit = native.exit_recipe }, 1
end

-- A run that failed before the session began.
function Repl:look_at(message)
  local failure = { text = message .. "\n", frames = {}, exit = native.exit_recipe }
  take_callback_failure(self, failure)
  self.failure, self.frame = failure, 1
  if #failure.frames > 0 then host.print("  :bt  :frame N  :locals  ctx  show the call that failed\n") end
end

-- Runs Lua code as an entry. "ok", or "error" and an exit code.
function Repl:run(text)
  local first_line = remember(self, text)
  local fn, message = eval.compile(text, first_line, self.vars)
  if not fn then
    local _, failure = eval.run(self.session, function()
      self.session:problem(eval.syntax_problem(self.session, message))
    end)
    return self:fail(failure)
  end
  local started = host.now()
  local ok, results = eval.run(self.session, fn)
  host.boundary()
  if not ok then return self:fail(results) end
  self.entries[#self.entries + 1] = text
  print_results(self, results, text)
  note_unused_writes(self)
  local seconds = host.now() - started
  if self.interactive and seconds > kShownSeconds then host.print(("%66s[%.2f s]\n"):format("", seconds)) end
  return "ok"
end

-- Strips prompts that were pasted with the text.
local function without_prompts(text)
  if not text:find("^>+ ") then return text end
  return (("\n" .. text):gsub("\n>+ ", "\n"):sub(2))
end

-- What other prompts run instead.
local kLeave = { exit = true, quit = true, ["exit()"] = true, ["quit()"] = true, logout = true, bye = true, ["os.exit()"] = true }

-- What IPython calls a command.
local kMagics = { time = "time", timeit = "bench", prun = "prof", who = "who", whos = "who", hist = "history", history = "history",
  save = "save", logstart = "log", debug = "bt", tb = "bt", reload = "reload", quit = "quit", exit = "quit" }

-- What to type instead of %time x, !ls, or nil.
local function habit(text)
  local magic, rest = text:match "^%s*%%%%?(%a+)%s*(.-)%s*$"
  if kMagics[magic] then return ("a command begins with a colon here:  :%s%s"):format(kMagics[magic], rest ~= "" and " " .. rest or "") end
  if magic then return "a command begins with a colon here;  ?  lists them" end
  local command = text:match "^%s*!%s*(.-)%s*$"
  return command and ("a shell command begins with a semicolon here:  ;%s"):format(command)
end

local function leaves(self, text)
  local word = text:match "^%s*(.-)%s*;?%s*$"
  return kLeave[word] and rawget(self.vars, word) == nil
end

-- One entry: "ok", "incomplete", "quit", or "error" and an exit code.
local function enter(self, text)
  text = without_prompts(text)
  if text:find("^%s*$") then return "ok" end
  if leaves(self, text) then return "quit" end
  local instead = habit(text)
  if instead then
    host.print(instead .. "\n")
    return "error", native.exit_usage
  end
  local asked = text:match "^%s*([%a_][%w_%.:]*)%s*%?%??%s*$"   -- name? and name??, as in IPython
  if asked then text = "?" .. asked end
  local mode, rest = text:match("^%s*([%?;:=])(.*)$")
  if mode == "?" then
    self:say(help.of_text(self, rest))
  elseif mode == ";" then
    local status = host.shell(rest)
    if status ~= 0 then host.print(("[exit %d]\n"):format(status)) end
  elseif mode == ":" then
    return commands.run(self, rest)
  else
    if mode == "=" then text = rest end
    if eval.is_incomplete(text) then return "incomplete" end
    return self:run(text)
  end
  return "ok"
end

-- The same, and what there is to tell of it: value, shown (the value as ranks compare it), failure, place.
function Repl:entry(text)
  self.told = {}
  local status, exit = enter(self, text)
  return status, exit or 0, self.told
end

-- An entry that another rank ran alone, with its address and without: places in errors count its lines on all of them.
function Repl:pass_over(addressed, text)
  if text:find("^%s*[^%s%?;:]") then remember(self, text) end
  self.entries[#self.entries + 1] = addressed
end

-- For entries that are run elsewhere: the page of a name, and whether a text is the beginning of an entry.
function Repl:help(text) return help.of_text(self, text) end
function Repl.is_incomplete(_, text) return eval.is_incomplete(text) end

-- Words for the one that ends at the cursor, and a line that helps.
function Repl:complete(line) return complete.candidates(self, line) end

-- The history of a key of the draft, what holds last, then what was commanded in the open run; nil and why.
function Repl:why(path)
  if not self.draft then return nil, "there is no recipe: start with  tycho repl RECIPE" end
  return show_config.why(self.draft, path, self.run_dir)
end

-- The field at a dotted path, and what set its value, nil for a default.
function Repl:field(path)
  local draft = self.draft
  local field = draft and node.field_at(draft.root, path) or schema.index(self.session.schema)[path]
  local newest = draft and draft.history[path] and history.latest(draft.history[path])
  return field, draft and not (newest and newest.by == "default") and history.site(draft, path) or nil
end

return { new = new }
