-- Learning rate schedules that are functions: called once for every step before the run, so that they cost nothing in it.
local functions = require "tycho.functions"
local history = require "tycho.history"
local native = require "tycho.native"
local own_kinds = require "tycho.own.kinds"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local kChecked = 64   -- steps that are asked again, in another order
local kHint = "a schedule may depend only on s; one that keeps state is  t.sched.dynamic(name, function(s, state) ... end)"

-- The loss and other results of steps are not known when all steps are asked.
local kStrict = { __index = function(_, name)
  error(("s has step, total, frac and warmup, not %s; a schedule that reads s.loss or keeps state is  t.sched.dynamic")
    :format(tostring(name)), 0)
end }

local function moment(step, total, warmup)
  return setmetatable({ step = step, total = total, frac = step / total, warmup = warmup }, kStrict)
end

-- What the function gives at a step; nil and what is wrong with it. given: the fields of a component's schedule.
local function value_at(self, fn, given, step, total, warmup)
  local ok, value = pcall(fn, moment(step, total, warmup), given)
  if not ok then
    if native.exit_of(value) then error(value, 0) end
    if value == self.stop_mark then return nil end   -- said where it happened
    return nil, ("failed at step %d: %s"):format(step, self.without_place(value))
  end
  if type(value) ~= "number" or value ~= value or value < 0 or value == math.huge then
    return nil, ("returned %s at step %d; expected a number >= 0, a share of the peak"):format(tostring(value), step)
  end
  return value
end

-- Factors by step; nil and what is wrong.
local function tabulate(self, fn, given, total, warmup)
  local before, factors = functions.identity(fn), {}
  for step = 0, total - 1 do
    local value, message = value_at(self, fn, given, step, total, warmup)
    if not value then return nil, message end
    factors[step + 1] = value
  end
  for i = 0, kChecked do
    local step = math.floor((total - 1) * (kChecked - i) / kChecked)
    local again, message = value_at(self, fn, given, step, total, warmup)
    if again ~= factors[step + 1] then
      return nil, message or ("is not pure: at step %d it returned %s, and %s when called again"):format(step,
        values.number_text(factors[step + 1]), values.number_text(again)), kHint
    end
  end
  if functions.identity(fn) ~= before then return nil, "is not pure: it changes a variable outside itself", kHint end
  return native.array(factors)
end

-- The name of a schedule that is a function of this base ("fn" or "dynamic"), the function, and what it gets beside its moment:
-- the fields of a component; nil for another schedule.
function M.function_of(node, base)
  local own = own_kinds.of_node(node)
  if own then
    if own.base == base then return own.name, own.functions.factor.fn, node.proxy end
  elseif node.kind == base then
    return node.values.name, node.values.fn.fn
  end
end

-- The factors of a finished recipe whose schedule is a function; nil for another schedule, and while the length of the run
-- is not known.
function M.factors(self, facts)
  local node = self.root.values.scheduler
  if type(node) ~= "table" or not node.kind or facts.steps == values.null then return nil end
  local name, fn, given = M.function_of(node, "fn")
  if not fn then return nil end
  local factors, message, hint = tabulate(self, fn, given, facts.steps, facts.warmup_steps)
  if factors or not message then return factors end
  local site = history.site(self, "scheduler.fn") or history.site(self, "scheduler") or self.site
  self:problem(site_of.problem(site, "value", ("the schedule %s %s"):format(name, message), hint))
end

return M
