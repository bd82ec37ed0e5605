-- t.sweep: the root of a sweep, the constructors that only sweeps have, and the door for C++.
local arguments_of_sweep = require "tycho.sweep.arguments"
local component = require "tycho.component"
local dotted = require "tycho.sweep.dotted"
local errors = require "tycho.errors"
local native = require "tycho.native"
local points = require "tycho.sweep.points"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local steps = require "tycho.sweep.steps"
local values = require "tycho.values"

local M = {}

local text_of

-- A value as an argument of the command line writes it.
function text_of(value)
  if type(value) == "number" then return values.number_text(value) end
  if type(value) == "boolean" then return tostring(value) end
  if value == values.null then return "null" end
  if values.is_quantity(value) then return values.text(value) end
  if type(value) ~= "table" then return value end
  local out = {}
  for i, item in ipairs(value) do out[i] = text_of(item) end
  return "[" .. table.concat(out, ",") .. "]"
end

local function texts(list)
  local out = {}
  for i, value in ipairs(list) do out[i] = text_of(value) end
  return out
end

local function condition(given)
  local out = {}
  for key, value in pairs(given) do out[key] = text_of(value) end
  return out
end

-- t.space.log(1e-4, 6e-3), t.space.choice { 0, 0.1 }, t.space.zip { ["model.width"] = { 512, 768 }, ... },
-- t.space.when({ optimizer = "lion" }, t.space.log(...)), t.search.grid { ["optimizer.lr"] = 6 }.
function M.add_constructors(session, groups)
  local function make(namespace, kind, given)
    return component.make(namespace, kind, given, site_of.of_call(session.sites, kind, schema.sorted_keys(given)))
  end
  for kind, names in pairs { range = { "low", "high" }, log = { "low", "high" }, int = { "low", "high" }, normal = { "mean", "std" } } do
    groups.space[kind] = function(a, b, third)
      if type(a) ~= "number" or type(b) ~= "number" then
        session:refuse(kind, ("t.space.%s expects two numbers: t.space.%s(%s, %s)"):format(kind, kind, names[1], names[2]))
      end
      if kind ~= "normal" and not (a < b) then   -- luacheck: ignore 581 (a NaN is refused too)
        session:refuse(kind, ("t.space.%s expects the lower number first, got %s and %s"):format(kind, text_of(a), text_of(b)))
      end
      if third == nil then return make("space", kind, { [names[1]] = a, [names[2]] = b }) end
      local list, expected = steps.values(kind, a, b, third)
      if not list then session:refuse(kind, ("t.space.%s expects %s"):format(kind, expected)) end
      return make("space", "choice", { values = texts(list) })
    end
  end
  groups.space.choice = function(list)
    if type(list) ~= "table" or #list == 0 then session:refuse("choice", "t.space.choice expects a list: t.space.choice { 1, 2, 3 }") end
    return make("space", "choice", { values = texts(list) })
  end
  groups.space.zip = function(lists)
    local keys, length = {}, nil
    for key, list in pairs(type(lists) == "table" and lists or {}) do
      if type(list) ~= "table" or #list ~= (length or #list) or #list == 0 then
        session:refuse("zip", "t.space.zip needs lists of the same length by recipe key")
      end
      keys[key], length = texts(list), #list
    end
    if not length then session:refuse("zip", 't.space.zip expects lists: t.space.zip { ["model.width"] = { 512, 768 }, ... }') end
    return make("space", "zip", { keys = keys })
  end
  groups.space.when = function(given, space)
    local made = component.behind(space)
    if type(given) ~= "table" or not made then
      session:refuse("when", 't.space.when expects a condition and a space: t.space.when({ optimizer = "lion" }, t.space.log(1e-5, 1e-3))')
    end
    local with = { when = condition(given) }
    for key, value in pairs(made.given) do with[key] = value end
    return component.make("space", made.kind, with, made.site)
  end
  groups.space.cases = function(list)
    local kExample = 't.space.cases { t.space.when({ optimizer = "lion" }, t.space.log(1e-5, 1e-3)), t.space.log(1e-4, 1e-2) }'
    for i = 1, math.max(1, type(list) == "table" and #list or 0) do
      local made = type(list) == "table" and component.behind(list[i])
      if not made or made.kind == "zip" or made.kind == "cases" then
        session:refuse("cases", "t.space.cases expects a list of spaces for one key", "write  " .. kExample)
      end
    end
    return make("space", "cases", { cases = list })
  end
  groups.search.grid = function(given) return make("search", "grid", { points = given or {} }) end
end

local function condition_of(value)
  local behind = component.behind(value)
  return behind and behind.namespace == "space" and behind.given.when
end

-- Two conditions of one key, of which the second assignment would take the first away.
local function refuse_second_condition(made, key, value, site)
  local before = made.conditions[key]
  made.conditions[key] = condition_of(value) and site or nil
  if not before or not condition_of(value) or before.file ~= site.file then return end
  made:problem(site_of.problem(site, "key", ("%s has a condition already, at %s"):format(key, site_of.text(before, made.sites)),
    ("write both as one:  s.space[%q] = t.space.cases { t.space.when(...), t.space.when(...) }"):format(key)))
  made:stop()
end

-- A function under s.stop is kept here, and the tree gets the rule that stands for it.
local function take_functions(made)
  local write = made.write
  made.write = function(at, key, value, site)
    if at.path == "space" then refuse_second_condition(made, key, value, site) end
    if at.path == "stop" then made.rules[key] = nil end
    if at.path == "stop" and type(value) == "function" then
      made.rules[key] = value
      value = component.make("stop", "rule", {}, site)
    end
    return write(at, key, value, site)
  end
end

-- A new sweep with the defaults of its schema.
function M.new(session, name)
  if session.kind ~= "sweep" then
    session:refuse("sweep", "t.sweep makes a sweep, and this file is read as a recipe", "start it with  tycho sweep " .. (session:origin_name() or session.file))
  end
  local recipe = require "tycho.recipe"
  local proxy = recipe.new(session, name)
  local made = recipe.behind(proxy)
  made.rules, made.skips, made.conditions = {}, {}, {}
  take_functions(made)
  made.root.methods.skip = function(_, fn)
    if type(fn) ~= "function" then
      session:refuse("skip", "s:skip expects a function of a point", 's:skip(function(p) return p["model.width"] > 512 end)')
    end
    table.insert(made.skips, { fn = fn, site = site_of.of_name(session.sites, "skip") })
  end
  return proxy
end

local current   -- the sweep whose rules judge() asks

-- Gives the request its arguments as the schema of a sweep has them, and what is wrong with the others.
local function read_arguments(request)
  local kept = {}
  request.problems = request.problems or {}
  for _, one in ipairs(request.arguments) do
    local read, problem = dotted.read(one)
    table.insert(read and kept or request.problems, read or problem)
  end
  request.arguments = kept
end

-- The door for C++. request: file, arguments, trace, files; of_recipe with name and trials when the file is a recipe and
-- the space stands in the arguments. Returns what session.load does, and trials, and the text that was made of arguments.
function M.load(request)
  local trials, text
  if request.of_recipe then text = arguments_of_sweep.make_program(request) end
  read_arguments(request)
  request.schema, request.kind = native.sweep_schema(), "sweep"
  request.check_tree, request.facts = function() return {} end, function() return {} end   -- both are of recipes
  request.on_finished = function(session, made)
    current = made
    trials = points.make(session, made)
  end
  local result = require("tycho.session").load(request)
  result.trials, result.text, result.lua, result.history = native.array(trials or {}), text, nil, nil
  return result
end

-- The first function rule that ends a trial with these numbers: { stop = name } or {}; a rule that fails is an error.
function M.judge(request)
  for _, name in ipairs(schema.sorted_keys(current.rules)) do
    local ok, stop = pcall(current.rules[name], request.numbers)
    if not ok then
      local said = errors.text(stop)
      return { failed = name, message = said }
    end
    if stop then return { stop = name } end
  end
  return {}
end

return M
