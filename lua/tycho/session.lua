-- One load of one recipe: reads its files, runs it in the sandbox, and gives the resolved recipe or the
-- report.
local arguments_of = require "tycho.arguments"
local errors = require "tycho.errors"
local expressions = require "tycho.overrides.expressions"
local habits = require "tycho.hints.habits"
local literal = require "tycho.overrides.literal"
local missing = require "tycho.hints.missing"
local functions = require "tycho.functions"
local hub_names = require "tycho.hub_names"
local native = require "tycho.native"
local origin = require "tycho.origin"
local override_files = require "tycho.overrides.files"
local own_kinds = require "tycho.own.kinds"
local pieces = require "tycho.overrides.pieces"
local pins = require "tycho.overrides.pins"
local recipe = require "tycho.recipe"
local report = require "tycho.report"
local sandbox = require "tycho.sandbox"
local schema = require "tycho.schema"
local serialize = require "tycho.serialize"
local site_of = require "tycho.site"
local sources_of = require "tycho.sources"

-- finished: the recipe of the newest load that found nothing wrong. A run calls its functions.
local M = {}

local kMaxPasses = 6   -- of a recipe with key:=expression

local Session = {}
Session.__index = Session

-- A problem of a recipe that was made of a file of another system belongs to the line of that file.
local function at_origin(session, problem)
  local made, place = site_of.origin(session.sites, problem.file, problem.line)
  if place and place.argument then
    problem.file, problem.line, problem.col, problem.argument, problem.text = nil, nil, nil, place.argument, place.text
  elseif place then
    problem.file, problem.line, problem.col, problem.len = made.file, place.line, place.col, place.len
    session.sources[made.file] = made.text
  else
    problem.made_from = made and made.file
  end
  return problem
end

function Session:problem(problem) report.add(self.report, at_origin(self, problem)) end
function Session:problem_count() return #self.report.list end
function Session:warning(warning) report.add(self.warnings, at_origin(self, warning)) end

-- The file of another system that the recipe was made of, or nil.
function Session:origin_name()
  local made = self.made_from[self.file]
  return made and made.file
end

-- Ends the recipe; what is wrong has been reported.
function Session:stop() error(self.stop_mark, 0) end

-- Reports at a name on the running line, then ends the recipe. absent: the recipe may be right, and what it reads is not here.
function Session:refuse(name, message, hint, absent)
  local problem = site_of.problem(site_of.of_name(self.sites, tostring(name)), "key", message, hint)
  problem.absent = absent
  self:problem(problem)
  self:stop()
end

-- Reports at a key of a table that recipe code wrote, then ends the recipe.
function Session:refuse_at(site, message, hint)
  self:problem(site_of.problem(site, "key", message, hint))
  self:stop()
end

-- The text of what was raised, without the place that Lua puts before it.
function Session.without_place(raised)
  return (errors.text(raised):gsub("^[^\n:]*:%d+: ", ""))
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
  if errors.ends_run(raised) then return raised end
  local file, line = site_of.caller(session.sites)
  local text = errors.text(raised)
  if file then text = text:gsub("^[^\n]-:" .. line .. ": ", "") end
  local token, hint = habits.at_run(file and site_of.index(session.sites, file), line, text)
  session:problem { file = file, line = line, col = token and token.col, len = token and token.len, message = text,
    hint = missing.hint(session.sites, file, line, text) or hint, trace = session.trace and user_frames(session) or nil }
  return session.stop_mark
end

local function wrong_result(session, result)
  local text = session.sources[session.file]
  local last = select(2, text:gsub("\n", "")) + (text:sub(-1) == "\n" and 0 or 1)
  local message = ("the file returned %s, not a recipe"):format(result == nil and "nothing" or "a " .. type(result))
  local hint, kinds = 'end it with  return r  where  local r = t.recipe "name"', schema.sorted_keys(session.own_kinds)
  if #kinds > 0 then
    message, hint = ("the file defines t.%s and is no recipe"):format(table.concat(kinds, ", t.")), "check a recipe that requires it"
  end
  session:problem { file = session.file, line = last, message = message, hint = hint, no_recipe = true }
end

-- What all problems of a report are alike: "open" (keys are left to whoever extends it), "absent" (it reads what is not
-- here), "no recipe"; else "wrong". With the open keys, and whether one of them was left open by name.
local function verdict(problems)
  local open, on_purpose, kinds = native.array {}, false, {}
  for _, one in ipairs(problems) do
    kinds[one.open and "open" or one.absent and "absent" or one.no_recipe and "no recipe" or "wrong"] = true
    if one.open then open[#open + 1], on_purpose = one.open, on_purpose or one.on_purpose end
  end
  local kind = next(kinds)
  return { kind = next(kinds, kind) == nil and kind or "wrong", open = open, on_purpose = on_purpose }
end

-- What is wrong with an argument, at its text or at its line of a file.
local function tell(session, kind, one, said)
  local site = { argument = one.argument, text = one.text, file = one.file, line = one.line }
  if one.override then site = one.override.site end
  if said.col and not one.override then
    site.key = { line = one.line, col = said.col + (one.col or 1) - 1, len = said.len }
  end
  local problem = site_of.problem(site, "key", said.message, said.hint, said)
  if kind == "warning" then session:warning(problem) else session:problem(problem) end
end

-- What files are read with: texts that stand for files come first; with only_files there are no others.
local function reader(options)
  local read, files = options.read_file or native.read_file, options.files or {}
  return function(name)
    if files[name] then return files[name] end
    if options.only_files then return nil, name .. " is not among the files of the run", true end
    return read(site_of.path_of(name))
  end
end

-- What finds the names of all Lua files in a folder.
local function lister(options)
  local list, files = options.list_files or native.lua_files, options.files or {}
  return function(folder)
    local found, out = {}, {}
    for name in pairs(files) do found[name] = name:sub(1, #folder + 1) == folder .. "/" or nil end
    local listed, message = {}, nil
    if not options.only_files then listed, message = list(site_of.path_of(folder)) end
    if not listed then return nil, message end
    for _, name in ipairs(listed) do found[folder .. "/" .. name] = true end
    for name in pairs(found) do out[#out + 1] = name end
    table.sort(out)
    return out
  end
end

local function new_session(options, expected)
  local session = setmetatable({
    schema = own_kinds.schema_of_session(options.schema or native.schema), own_kinds = {}, facts = options.facts or native.facts, file = options.file,
    trace = options.trace, read_file = reader(options), list_files = lister(options), modules = {}, drafts = options.drafts,
    kind = options.kind or "recipe", of_recipe = options.of_recipe, made_from = options.made_from or {}, on_finished = options.on_finished,
    search_path = options.search_path,
    canonical = options.read_file and tostring or native.canonical,
    sources = {}, loaded = {}, ran = {}, environment = {}, commits = {}, printed = {}, report = report.new(), warnings = report.new(),
    read_pin = literal.read, run_file = sources_of.run_file, takes = sources_of.takes,
    stop_mark = setmetatable({}, { __tostring = function() return "the recipe ended here" end }),
  }, Session)
  session.session = session
  session.sites = site_of.new(session.sources, session.file, session.made_from)
  session.t = require("tycho").new(session)
  own_kinds.expect(session.schema, expected or {})
  local function output(text)
    if #session.expressions == 0 and not session.bad_arguments then return (options.output or native.output)(text) end
    table.insert(session.printed, text)
  end
  for _, problem in ipairs(options.problems or {}) do session:problem(problem) end
  session.expressions = {}
  session.env = sandbox.environment(output, sources_of.make_require(session), function(...) return session:refuse(...) end)
  functions.register(session.env, session)
  return session
end

-- Calls fn; what recipe code raises in it becomes a problem, errors of the host go on. True and the result when it
-- came to its end.
local function guarded(session, fn)
  local ok, result = xpcall(fn, function(raised) return on_error(session, raised) end)
  if ok or result == session.stop_mark then return ok, result end
  if type(result) ~= "string" then error(result, 0) end
  local why = result:find("not enough memory", 1, true) and "it uses too much memory: is there an endless loop?"
    or result:find("error in error handling", 1, true) and "its error could not be reported: does a __tostring fail?"
    or result:find("stack overflow", 1, true) and "too many nested calls: is there an endless recursion?" or result
  session:problem { file = session.sites.running, message = "stopped: " .. why }   -- raised where no handler could run
  return false
end

local function read_arguments(session, arguments, computed)
  local before, expanded = session:problem_count(), {}
  local whole = pieces.joined(arguments, function(...) tell(session, ...) end)
  guarded(session, function() expanded = override_files.expand(session, whole) end)
  expanded = arguments_of.take(session, expanded)
  session.pins, session.expressions = pins.parse(session.schema, expanded, function(...) tell(session, ...) end)
  session.bad_arguments = session:problem_count() > before
  expressions.prepare(session, computed)
end

-- A copy of a recipe that nobody's code asked for: what it writes is said to stand where the recipe was made.
local function copied(session, made)
  session.sites.forced = made.site
  local copy = recipe.behind(recipe.extend(made, made.name))
  session.sites.forced = nil
  return copy
end

-- The recipe that the session's file makes, finished; nil when there is none. Everything wrong is in the report.
local function make_recipe(session, text, check_tree)
  if not session:takes(session.file, text) then return nil end
  local ok, result = guarded(session, function() return session.run_file(session, session.file, text) end)
  if not ok then
    arguments_of.report_unused(session, function(...) tell(session, ...) end)
    return nil
  end
  local made = recipe.behind(result)
  if not made then return wrong_result(session, result) end
  if session.drafts then session.draft = copied(session, made) end
  guarded(session, function() recipe.finish(made, check_tree) end)
  arguments_of.report_unused(session, function(...) tell(session, ...) end)
  if session.on_finished and session:problem_count() == 0 then
    guarded(session, function() session.on_finished(session, made) end)
  end
  return made
end

-- One pass: a session that has run, the recipe or nil, and the text of its file or nil. expected: kinds that it may define.
local function run_pass(options, computed, expected)
  local session = new_session(options, expected)
  read_arguments(session, options.arguments or {}, computed)
  local text, message = session.read_file(session.file)
  if not text then
    session:problem { message = message }
    return session
  end
  -- `tycho check` looks at the files, too, that a run would need at once.
  local function check_all(tree) return native.check_tree(tree, options.lint, options.num_ranks, options.needs_files) end
  return session, make_recipe(session, text, options.check_tree or check_all), text
end

-- True when arguments may be about kinds that this pass defined and that they could not know of.
local function has_more_kinds(session, expected)
  for name in pairs(session.bad_arguments and session.own_kinds or {}) do
    if not expected[name] then return true end
  end
  return false
end

-- Passes until what the expressions give no longer changes; and one more where arguments are about kinds of the recipe's own.
local function run_passes(options)
  local computed, expected = {}, {}
  for pass = 1, kMaxPasses do
    local session, made, text = run_pass(options, computed, expected)
    if has_more_kinds(session, expected) then
      expected = session.own_kinds
      session, made, text = run_pass(options, computed, expected)
    end
    local latest = made or session.newest
    if #session.pending == 0 or not latest then return session, made, text end
    local next_computed, changed = expressions.compute(session, latest)
    if not next_computed or not changed then return session, made, text end
    if pass == kMaxPasses then
      for _, place in ipairs(session.pending) do
        session:problem(site_of.problem(place.absolute.site, "value",
          "its result changes its own inputs, endlessly"))
      end
      return session, made, text
    end
    computed = next_computed
  end
end

-- What a finished recipe is to the host: tree, name, lua and history.
local function resolved(session, made, arguments)
  local tree = hub_names.pin_tree(session, recipe.tree(made))
  return { tree = tree, commits = session.commits, name = made.name, history = serialize.history(made.history),
    lua = serialize.recipe(session.schema, tree, made.name, function() return origin.lines(session, arguments or {}) end),
    schedule = made.schedule, sources = session.sources, modules = sources_of.module_hashes(session), environment = session.environment }
end

-- options: file, arguments = { { argument, text } }, trace, quiet (print nothing), lint (look for what is never read, too), num_ranks (check
-- that it fits them), files = { name = text }, only_files, search_path (instead of TYCHO_PATH), made_from = { name = { file, text, lines } of
-- the file of another system that it was made of: line of the recipe -> { line, col, len } there or { argument } }; and what tests replace:
-- read_file(path) -> text or nil and message, schema, check_tree(tree) -> { { path, message } }, facts(tree),
-- kind ("recipe" or "sweep"), on_finished(session, recipe) for a recipe without problems,
-- output(text). Returns { problems = count, report = text, verdict } or, when there are none, tree, name, lua and history;
-- sources, environment and warnings in both cases; and the session.
local function load(options)
  if options.quiet then options.output = function() end end
  local session, made, text = run_passes(options)
  local output = options.output or native.output
  for _, printed in ipairs(session.printed) do output(printed) end
  if options.lint and session:problem_count() == 0 then sources_of.lint(session) end
  if session:problem_count() > 0 then report.drop_of_valid(session.warnings) end
  local result = { problems = session:problem_count(), sources = session.sources, environment = session.environment,
    warnings = report.as_data(session.warnings) }
  local warnings = report.warnings(session.warnings, session.sources)
  if warnings ~= "" then output(warnings) end
  if result.problems > 0 then
    result.verdict, result.problem_list = verdict(session.report.list), report.as_data(session.report)
    result.report = report.text(session.report, session.sources, session.kind, text and session.file,
      session:origin_name())
  else
    for key, value in pairs(resolved(session, made, options.arguments)) do result[key] = value end
    M.finished = made
  end
  return result, session
end

-- The schema with the kinds that recipes or modules define, whatever else is wrong with them; and the report of a file that
-- defines none because something is wrong; and the newest recipe, as far as it came, or nil. read_file: as for load.
local function schema_of(files, read_file)
  local root, wrong, newest = own_kinds.schema_of_session(native.schema), nil, nil
  for _, file in ipairs(files) do
    local session = run_passes { file = file, read_file = read_file, output = function() end, check_tree = function() return {} end,
      facts = function() return { steps = native.null } end }
    own_kinds.expect(root, session.own_kinds)
    newest = session.newest or newest
    if next(session.own_kinds) == nil and session:problem_count() > 0 then
      wrong = wrong or report.text(session.report, session.sources, session.kind, session.file, session:origin_name())
    end
  end
  return root, wrong, newest
end

-- For the REPL. Loads like load; gives the session, whose `draft` is a copy of the recipe that can still be written (nil
-- when the file made none), and the report of what is wrong, or nil. Without options.file: an empty recipe.
local function open(options)
  options.drafts = true
  local session, text
  if options.file then
    local made
    session, made, text = run_passes(options)
    if not made and not session.draft and session.newest then session.draft = session.newest end
  else
    options.file = "stdin"
    session = new_session(options)
    session.sources.stdin = ""
    read_arguments(session, options.arguments or {}, {})
    session.sites.forced = { file = "stdin", line = 1 }
    guarded(session, function() session.draft = recipe.behind(recipe.new(session, "untitled")) end)
    session.sites.forced = nil
  end
  for _, printed in ipairs(session.printed) do native.output(printed) end
  session.expressions = {}
  if session:problem_count() == 0 then return session, report.warnings(session.warnings, session.sources) end
  return session, report.text(session.report, session.sources, session.kind, text and session.file,
      session:origin_name())
end

-- What a draft comes to: `resolved` of a finished copy; problems go to the session's report, and then nothing comes back.
local function finish(session, draft)
  local copy = copied(session, draft)
  recipe.finish(copy, native.check_tree)
  if session:problem_count() > 0 then session:stop() end
  M.finished = copy
  return resolved(session, copy)
end

M.load, M.run, M.open, M.finish, M.schema_of = load, run_passes, open, finish, schema_of

return M
