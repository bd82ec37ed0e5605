-- The recipe while its run trains: calls the functions of its callbacks and schedules. C++ decides when.
local attached = require "tycho.attached"
local debug_prompt = require "tycho.debug_prompt"
local errors = require "tycho.errors"
local missing = require "tycho.hints.missing"
local native = require "tycho.native"
local node_of = require "tycho.node"
local own_kinds = require "tycho.own.kinds"
local plain = require "tycho.plain"
local ready = require "tycho.ready_callbacks"
local recipe_of = require "tycho.recipe"
local schedules = require "tycho.schedules"
local session_of = require "tycho.session"
local show = require "tycho.repl.show"
local site_of = require "tycho.site"
local stack = require "tycho.frames"
local values = require "tycho.values"

local M = {}

local entries = {}   -- name -> { kind, functions = { event = fn }, state, before = copy of state, given = fields of a component }
local kSchedule = "the schedule"

local event_names = {}   -- of the loop, from C++
local ctx_values = {}    -- members of ctx that are plain values

-- A local as text, and as a value where it is plain data: what outlives the call.
-- The call may have failed because memory is short, so what is large is only named.
local function kept_local(name, value)
  if not plain.is_small(value) then return { name = name, text = "a large " .. type(value) } end
  return { name = name, text = show.brief(value), value = plain.copy(value) }
end

-- What there is to see of a call that fails, while it is still on the stack.
local function remember_failure(level, ctx)
  local failure = { frames = stack.from(level + 1, kept_local), ctx = {} }
  for _, name in ipairs(ctx_values) do
    local ok, value = pcall(function() return ctx[name] end)
    if ok then failure.ctx[name] = value end
  end
  M.failure = failure
end

-- file:line of the innermost frame of recipe code, or nil.
local function place()
  local level = 3
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.source:sub(1, 1) == "@" and info.currentline > 0 then
      return ("%s:%d"):format(info.source:sub(2), info.currentline)
    end
    level = level + 1
  end
end

local function begin_of(fn)
  local info = debug.getinfo(fn, "S")
  return ("%s:%d"):format(info.source:sub(2), info.linedefined)
end

-- Says which field the running line reads that is not there.
local function missing_field(text, at)
  local file, line = (at or ""):match "^(.*):(%d+)$"
  return M.recipe and missing.hint(M.recipe.session.sites, file, tonumber(line), text)
end

-- What is raised, with the line that raised it before its text; that of `fn` when a tail call has left none.
local function on_error(raised, fn)
  local text = errors.text(raised)
  local at = type(raised) == "table" and raised.where or place() or fn and begin_of(fn)
  local hint = type(raised) == "table" and raised.hint or missing_field(text, at)
  if hint and not text:find("did you mean", 1, true) then text = text .. "; " .. hint end
  if at and not text:find(at, 1, true) then text = at .. ": " .. text end
  return native.with_exit({ message = text }, native.exit_of(raised))
end

-- Raised where no handler could run.
local function without_handler(raised, fn)
  if type(raised) ~= "string" then return raised end
  local why = raised:find("not enough memory", 1, true) and "stopped: this call needs more memory than lua_memory allows"
    or raised
  return { message = begin_of(fn) .. ": " .. why }
end

local called, called_with   -- the function that runs, and its argument

local function on_failure(raised)
  local told = on_error(raised, called)
  remember_failure(2, called_with)
  return told
end

-- What is wrong in recipe code is an error at its line now, not a line of a report.
local function enter_run(session)
  local function raise(_, problem)
    error({ message = problem.message .. (problem.hint and "; " .. problem.hint or ""),
      where = problem.file and ("%s:%d"):format(problem.file, problem.line) }, 0)
  end
  session.problem, session.warning = raise, function() end
  session.refuse = function(self, name, message, hint)
    raise(self, site_of.problem(site_of.of_name(self.sites, tostring(name)), "key", message, hint))
  end
end

local kOwn = { observe = true, control = true, everywhere = true }

local function own_entry(node)
  local entry = { kind = node.kind, functions = {}, state = plain.copy(node.values.state.data) }
  for _, event in ipairs(event_names) do
    local ref = node.values[event]
    if type(ref) == "table" and ref.fn then entry.functions[event] = ref.fn end
  end
  return entry
end

-- The entry of a component that the recipe defines.
local function component_entry(own, node)
  local entry = { kind = own.base, functions = {}, state = plain.copy(node.definition.state), given = node.proxy }
  for event, ref in pairs(own.functions) do entry.functions[event] = ref.fn end
  return entry
end

local function entry_of(node)
  local own = own_kinds.of_node(node)
  if own then return component_entry(own, node) end
  if kOwn[node.kind] then return own_entry(node) end
  local entry = ready[node.kind](node.proxy)
  entry.state = entry.state or {}
  return entry
end

-- Makes the entries of the newest finished recipe: { { name, kind, events } }, in the order of their names.
-- events_of_loop: the keys that may hold functions; values_of_ctx: members of ctx that a failure keeps; terminal: of t.debug.
function M.begin(events_of_loop, values_of_ctx, terminal)
  event_names, ctx_values = events_of_loop, values_of_ctx
  local made = assert(session_of.finished, "no recipe")
  recipe_of.freeze(made, "training has started", "ctx.cmd in a t.control callback changes a live run")
  enter_run(made.session)
  made.session.open_prompt = function()
    if called then debug_prompt.open(terminal, made, called_with, on_error) end
  end
  M.recipe = made
  local out, map = {}, made.root.values.callbacks
  for i, name in ipairs(map.keys) do
    local entry, events = entry_of(map.values[name]), {}
    for event in pairs(entry.functions) do events[#events + 1] = event end
    entries[name] = entry
    out[i] = { name = name, kind = entry.kind, events = events }
  end
  local scheduler = made.root.values.scheduler
  local name, fn, given = schedules.function_of(scheduler, "dynamic")
  if fn then
    local state = given and scheduler.definition.state or scheduler.values.state.data
    entries[kSchedule] = { name = name, functions = { factor = fn }, state = plain.copy(state), given = given }
  end
  return { callbacks = out, seed = made.root.values.seed }
end

-- The state that a call leaves becomes what the next one begins with; what is wrong with it.
local function keep_state(entry, fn)
  if plain.follow(entry.before, entry.state) then return nil end
  local after, found, at = plain.copy(entry.state)
  if after == nil then
    return { message = ("%s: state must be plain data; this call left %s%s"):format(begin_of(fn), found,
      at and " at " .. at or "") }
  end
  entry.before = after
end

-- One transaction: what raises, returns what `check` finds wrong, or leaves a state that no checkpoint could hold, leaves
-- the state as it was.
local function guarded(entry, fn, argument, check)
  entry.before = entry.before or plain.copy(entry.state)
  called, called_with = fn, argument
  local ok, result = xpcall(fn, on_failure, argument, entry.state, entry.given)
  called = nil
  local wrong = ok and (check and check(result) or keep_state(entry, fn))
  if ok and not wrong then return true, result end
  entry.state, entry.before = entry.before, nil
  return false, wrong or without_handler(result, fn)
end

-- Calls the function of an event. Raises { message = "file:line: ...", exit }; the state is then what it was before.
function M.run(name, event, ctx, seed)
  local entry = entries[name]
  math.randomseed(seed)
  local ok, raised = guarded(entry, entry.functions[event], ctx)
  if not ok then error(raised, 0) end
end

-- { frames, ctx } of the newest call that failed, once; nil when none did.
function M.take_failure()
  local failure = M.failure
  M.failure = nil
  return failure
end

-- The factor of a dynamic schedule. Raises { message = "the schedule NAME failed: file:line: ...", exit }.
function M.factor(moment)
  math.randomseed(moment.step)
  local entry = entries[kSchedule]
  local fn = entry.functions.factor
  local ok, result = guarded(entry, fn, moment, function(factor)
    if type(factor) == "number" and factor - factor == 0 and factor >= 0 then return nil end
    return { message = ("%s: it returned %s at step %d; expected a number >= 0, a share of the peak"):format(begin_of(fn),
      type(factor) == "number" and values.number_text(factor) or show.brief(factor), moment.step) }
  end)
  if ok then return result end
  result.message = ("the schedule %s failed: %s"):format(entry.name, result.message)
  error(result, 0)
end

function M.state(name) return entries[name or kSchedule].state end

function M.set_state(name, state)
  local entry = entries[name or kSchedule]
  entry.state, entry.before = state, nil
end

-- A schedule of t.sched as plain data, for ctx.cmd.set_schedule.
function M.schedule_tree(value)
  local made = M.recipe
  local at = { owner = setmetatable({ history = false }, { __index = made }), spec = made.root.spec, path = "", values = {},
    state = {}, written = {}, keys = {}, methods = {}, pins = { children = {} } }
  require("tycho.write").set(at, "scheduler", value, { file = made.session.file, line = 1 })
  local chosen = at.values.scheduler
  local tree = node_of.plain(chosen)
  if schedules.function_of(chosen, "fn") or schedules.function_of(chosen, "dynamic") then
    error({ message = "a schedule function must be in the recipe: it is checked and tabulated before the run" }, 0)
  end
  return recipe_of.text_tree(tree)
end

-- Runs what an operator typed; what it printed and its values as text.
function M.evaluate(code, ctx) return attached.evaluate(M.recipe, code, ctx, on_error) end

return M
