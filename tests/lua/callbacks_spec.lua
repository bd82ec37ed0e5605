-- Callbacks in recipes: functions and plain data as values, their identity, and where they stand.
local functions = require "tycho.functions"
local native = require "tycho.native"
local plain = require "tycho.plain"
local session = require "tycho.session"

local kHead = 'local t = require "tycho"\nlocal r = t.recipe "x"\n'
local kNeeds = 'r.model = t.model.llama {}\nr.optimizer = t.optim.adamw { lr = 1e-3 }\nr.max_duration = "10ba"\n'
  .. 'r.train_data = t.data.mds { local_dir = "d" }\n'

local function load(lines, arguments)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  local text = kHead .. kNeeds .. lines .. "\nreturn r\n"
  return session.load { file = "x.lua", arguments = numbered, output = function() end, read_file = function(path)
    if path == "x.lua" then return text end
    return nil, "cannot read " .. path, true
  end }
end

local function tree(...)
  local result = load(...)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree, result
end

local function report(...)
  local result = load(...)
  if result.problems == 0 then error("expected a report", 2) end
  return result.report
end

local kSpike = [[
r.callbacks.spike = t.control {
  every = "2ba", on_error = "disable", state = { mean = 0, deep = { 1, 2 } },
  batch_end = function(ctx, st) st.mean = ctx.loss end,
}]]

describe("callbacks and schedules of a recipe", function()
  it("a callback of one's own keeps its options, state and functions", function()
    local made = tree(kSpike).callbacks.spike
    assert(made.kind == "control" and made.every == "2ba" and made.on_error == "disable")
    assert(made.state.mean == 0 and made.state.deep[2] == 2)
    assert(made.batch_end.at == "x.lua:9", made.batch_end.at)
    assert(#made.batch_end.hash == 32 and made.eval_end == native.null)
  end)

  it("an unknown event names the one that was meant", function()
    local text = report "r.callbacks.x = t.observe { batch_ended = function() end }"
    assert(text:find("unknown key  callbacks.x.batch_ended (observe)", 1, true), text)
    assert(text:find("batch_end", 1, true), text)
  end)

  it("an event that is no function says what is expected", function()
    local text = report "r.callbacks.x = t.observe { batch_end = 3 }"
    assert(text:find("expected a function, such as  function(ctx) ... end", 1, true), text)
  end)

  it("state that is not plain names the place", function()
    local text = report "r.callbacks.x = t.observe { state = { a = { f = print } }, batch_end = function() end }"
    assert(text:find("found a function at a.f", 1, true), text)
  end)

  it("arguments add, change and remove callbacks", function()
    local made = tree(kSpike, { "+callbacks.gn=cb.grad_norm{every=4ba}", "callbacks.spike.every=5ba" }).callbacks
    assert(made.gn.kind == "grad_norm" and made.gn.every == "4ba" and made.spike.every == "5ba")
    assert(tree(kSpike, { "~callbacks.spike" }).callbacks.spike == nil)
  end)

  it("a function is the same wherever it stands, and another one when what it closes over changes", function()
    local lines = "local k = %d\n%sr.callbacks.x = t.observe { batch_end = function(ctx) return k end }"
    local function hash(k, before) return tree(lines:format(k, before)).callbacks.x.batch_end.hash end
    assert(hash(1, "") == hash(1, "-- moved\n"))
    assert(hash(1, "") ~= hash(2, ""))
  end)

  it("a resolved recipe takes its functions from where it came from", function()
    local _, result = tree(kSpike, { "seed=5" })
    assert(result.lua:find("local from = t.origin {", 1, true), result.lua)
    local files = { ["recipe.lua"] = result.lua, ["sources/x.lua"] = result.sources["x.lua"] }
    local again = session.load { file = "recipe.lua", read_file = function(path)
      if files[path] then return files[path] end
      return nil, "cannot read " .. path, true
    end }
    assert(again.problems == 0, again.report)
    assert(again.tree.seed == 5)
    assert(again.tree.callbacks.spike.batch_end.hash == result.tree.callbacks.spike.batch_end.hash)
  end)

  it("a pure schedule is tabulated", function()
    local _, result = tree 'r.scheduler = t.sched.fn("line", function(s) return 1 - s.frac end)'
    assert(#result.schedule == 10 and result.schedule[1] == 1 and math.abs(result.schedule[10] - 0.1) < 1e-12)
    assert(result.tree.scheduler.name == "line")
  end)

  it("a schedule knows its warm-up", function()
    local _, result = tree 'r.scheduler = t.sched.fn("w", function(s) return s.warmup end, { t_warmup = "3ba" })'
    assert(result.schedule[1] == 3)
  end)

  it("a schedule that remembers is refused", function()
    local text = report 'local n = 0\nr.scheduler = t.sched.fn("x", function(s) n = n + 1 return 1 end)'
    assert(text:find("the schedule x is not pure: it changes a variable outside itself", 1, true), text)
    assert(text:find("t.sched.dynamic", 1, true), text)
  end)

  it("a schedule that gives different values is refused", function()
    local text = report 'r.scheduler = t.sched.fn("x", function(s) return math.random() end)'
    assert(text:find("is not pure: at step", 1, true), text)
  end)

  it("a schedule that reads a clock cannot", function()
    local text = report 'r.scheduler = t.sched.fn("x", function(s) return os.time() end)'
    assert(text:find("os is not available in a recipe", 1, true), text)
  end)

  it("a schedule gives shares of the peak", function()
    local text = report 'r.scheduler = t.sched.fn("x", function(s) return s.frac < 0.5 and 1 or -1 end)'
    assert(text:find("returned -1 at step 5; expected a number >= 0", 1, true), text)
  end)

  it("plain data is copied, not shared", function()
    local mine = { a = { 1, 2 } }
    local copy = plain.copy(mine)
    mine.a[1] = 7
    assert(copy.a[1] == 1)
    mine.self = mine
    local none, found = plain.copy(mine)
    assert(none == nil and found:find "deep")
  end)

  it("functions of nobody are refused", function()
    assert(functions.keep(print) == nil)
  end)
end)
