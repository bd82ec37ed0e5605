-- key:=expression. Expressions that read the recipe are computed when it is finished; then it runs again with what they
-- gave, until nothing changes: so everything that depends on them follows.
local errors = require "tycho.errors"
local native = require "tycho.native"
local node_of = require "tycho.node"
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

-- An expression is arithmetic: 2 million instructions are about 10 ms. Counted, and not timed, because it must end alike on
-- every rank and on a busy machine; the seconds are for what one instruction can do, such as a slow pattern.
local kMaxInstructions, kMaxSeconds = 2e6, 1

local needs_recipe = {}   -- raised when an expression asks for r before there is one

local function environment(session, recipe)
  return setmetatable({}, { __metatable = "strict", __newindex = session.env, __index = function(_, name)
    if name == "t" then return session.t end
    if name ~= "r" then return session.env[name] end
    if not recipe then error(needs_recipe, 0) end
    return recipe.root.proxy
  end })
end

local function plain(value)
  local node = node_of.behind(value)
  return node and node_of.plain(node) or value
end

-- Runs one expression: true and its value, false and what it raised.
local function run(session, place, recipe)
  local pin = place.absolute
  local chunk, message = loadstring("return " .. pin.value, "=expression")
  if not chunk then return false, message end
  setfenv(chunk, environment(session, recipe))
  session.sites.forced, session.evaluating = pin.site, place.path
  local ok, value = native.limited(chunk, kMaxInstructions, kMaxSeconds)
  session.sites.forced, session.evaluating = nil, nil
  return ok, ok and plain(value) or value
end

local function report(session, place, raised)
  if raised == session.stop_mark then return end
  if errors.ends_run(raised) then error(raised, 0) end
  session:problem(site_of.problem(place.absolute.site, "value", session.without_place(raised)))
end

-- Gives every expression the value that an earlier pass computed; those that need no recipe get theirs now.
function M.prepare(session, computed)
  session.pending = {}
  for _, place in ipairs(session.expressions) do
    local pin = place.absolute
    if pin and pin.op == ":=" then
      local ok, value = run(session, place, nil)
      if ok then
        if value == nil then
          session:problem(site_of.problem(pin.site, "value", "the expression returns nothing; write  t.null  for none"))
        end
        pin.given = value
      elseif value == needs_recipe then
        pin.given = computed[place.path]
        table.insert(session.pending, place)
      else
        report(session, place, value)
      end
    end
  end
end

-- Computes the pending expressions on a recipe that has run. Returns path -> value, and whether any differs from what the
-- recipe ran with; nil when one failed and was reported.
function M.compute(session, recipe)
  local computed, changed, failed = {}, false, false
  for _, place in ipairs(session.pending) do
    local ok, value = run(session, place, recipe)
    if not ok or value == nil then
      failed = true
      report(session, place, ok and "the expression returns nothing" or value)
    else
      computed[place.path] = value
      changed = changed or schema.literal(value) ~= schema.literal(place.absolute.given)
    end
  end
  if failed then return nil end
  return computed, changed
end

return M
