-- t.init.define: initial values of the matrices of a model, as a function of drawn numbers and of the matrix.
local component = require "tycho.component"
local functions = require "tycho.functions"
local native = require "tycho.native"
local node = require "tycho.node"
local own_kinds = require "tycho.own.kinds"
local own_value = require "tycho.maths.own_value"
local recording = require "tycho.maths.recording"
local renumber = require "tycho.maths.renumber"
local schema = require "tycho.schema"
local trace = require "tycho.maths.trace"

local M = {}

local kInputs = { { name = "normal" }, { name = "uniform" }, { name = "cut_normal" } }
local kExample = "t.init.define(function(x, p) return x.normal * 0.02 end)"
local kFixed = "it begins with what the function returns"

-- The matrices of the model of a finished recipe. Empty if the model is wrong, which later checks report.
local function matrices_of(made)
  local model = made.root.values.model
  return model and native.init_matrices(require("tycho.recipe").text_tree(node.plain(model))) or {}
end

local function describe(matrix)
  return ("the %s matrix of layer %d, %d x %d"):format(matrix.role, matrix.layer, matrix.rows, matrix.columns)
end

-- Returns the spec that traces the function for a matrix or a state, and the set of fields that the function has read.
local function tracing_of(session, fn, matrix)
  local read = {}
  local p = own_value.strict(session, "p", matrix, { fixed = kFixed, read = function(key) read[key] = true end })
  local nothing = ("the function returns nothing for %s"):format(matrix.role and describe(matrix) or "state")
  return { session = session, fn = fn, inputs = kInputs, result = "value", nothing = nothing, run = function(symbols)
    return { value = recording.single(fn(own_value.strict(session, "x", symbols, { fixed = kFixed }), p)) }
  end }, read
end

-- Returns true if the function reads the same facts about two matrices, numbers aside.
local function are_alike(read, a, b)
  for key in pairs(read) do
    if a[key] ~= b[key] and type(a[key]) ~= "number" then return false end
  end
  return true
end

-- Returns the expression of a matrix, its shape (see renumber.lua) and the set of fields that the function has read. templates: earlier
-- calls, whose expressions may serve with other numbers.
local function expression_of(session, fn, matrix, templates)
  local spec, read = tracing_of(session, fn, matrix)
  for _, call in ipairs(templates) do
    local expression = are_alike(call.read, call.matrix, matrix) and renumber.renumbered(spec, call.template)
    if expression then return expression, call.template.shape, read end
  end
  local made = trace(spec)
  local template = renumber.template(made)
  if template then templates[#templates + 1] = { read = read, matrix = matrix, template = template } end
  return made.expression, template and template.shape or renumber.shape(made.expression), read
end

-- Adds a matrix to those that begin with a formula: { role, first, last } for neighbouring layers. newest: the last range of each role.
local function add_matrix(formula, newest, matrix)
  local range = newest[matrix.role]
  if range and range.last == matrix.layer - 1 then
    range.last = matrix.layer
    return
  end
  range = { role = matrix.role, first = matrix.layer, last = matrix.layer }
  formula.of[#formula.of + 1], newest[matrix.role] = range, range
end

-- Returns what remember() was given for an earlier matrix with the same values in all fields that the function read, or nil.
local function known(calls, matrix)
  for _, call in ipairs(calls) do
    local at = call.found
    for _, key in ipairs(call.keys) do at = at and at[matrix[key]] end
    if at then return at end
  end
end

-- Keeps what was found for a matrix by the values of the fields in `read`: found[value of the first key][value of the second] ....
local function remember(calls, read, matrix, formula)
  local keys = schema.sorted_keys(read)
  local name = table.concat(keys, " ")
  if not calls[name] then
    calls[name] = { keys = keys, found = {} }
    calls[#calls + 1] = calls[name]
  end
  local call = calls[name]
  if #keys == 0 then
    call.found = formula
    return
  end
  local at = call.found
  for i = 1, #keys - 1 do
    local value = matrix[keys[i]]
    at[value] = at[value] or {}
    at = at[value]
  end
  at[matrix[keys[#keys]]] = formula
end

-- Returns the formulas of all matrices. The function is called once for all matrices that agree in the fields that it reads.
local function formulas_of(session, fn, matrices)
  local formulas, calls, templates, by_key = native.array {}, {}, {}, {}
  for _, matrix in ipairs(matrices) do
    local found = known(calls, matrix)
    if not found then
      local expression, shape, read = expression_of(session, fn, matrix, templates)
      local key = renumber.key(expression, shape)
      found = by_key[key]
      if not found then
        found = { formula = { of = native.array {}, expression = expression }, newest = {} }
        by_key[key], formulas[#formulas + 1] = found, found.formula
      end
      remember(calls, read, matrix, found)
    end
    add_matrix(found.formula, found.newest, matrix)
  end
  return formulas
end

-- Returns the value of t.init.define, in which update.lua finds the function.
local function of_state(name, fn, site)
  local value = component.make("init", name, {}, site)
  component.behind(value).fn = fn
  return value
end

-- t.init.define(function(x, p) ... end): initial values for r.init, or for the state of an optimizer.
function M.define(session, given)
  if type(given) ~= "function" then session:refuse("define", "t.init.define expects a function of drawn numbers and of a matrix, such as  " .. kExample) end
  local ref, message = functions.keep(given)
  if not ref then session:refuse("define", message) end
  local site = own_value.site(session, given)
  local name = own_value.kind(session, "init", site)
  if session.makes_states then return of_state(name, given, site) end
  own_kinds.register(session, { namespace = "init", base = "defined", name = name, help = "Initial values of the recipe.", fields = {},
    table = "defaults", without = { "formulas", "code" }, site = site, functions = { ref }, definition = function(_, made)
      return { formulas = formulas_of(made.session, ref.fn, matrices_of(made)), code = { at = ref.at, hash = ref.hash } }
    end })
  return of_state(name, given, site)
end

-- t.init.NAME { ... }: initial values of state that need no function.
M.names = {
  normal = { defaults = { std = 1 }, value = function(x, given) return x.normal * given.std end },
  cut_normal = { defaults = { std = 1 }, value = function(x, given) return x.cut_normal * given.std end },
  uniform = { defaults = { low = 0, high = 1 }, value = function(x, given) return given.low + (given.high - given.low) * x.uniform end },
}

local function constructor(session, name, kind)
  local make = component.constructor(session, "init", name)
  local function refuse(key, expected, got) session:refuse(key, ("t.init.%s.%s: expected %s, got %s"):format(name, key, expected, schema.brief(got))) end
  return function(given)
    local value = make(given)
    local one = component.behind(value)
    local set = {}
    for key, default in pairs(kind.defaults) do set[key] = default end
    for _, key in ipairs(schema.sorted_keys(given or {})) do
      local number, names = given[key], schema.sorted_keys(kind.defaults)
      if set[key] == nil then
        local near = schema.did_you_mean(key, names)
        session:refuse(key, ("t.init.%s has no %s"):format(name, tostring(key)), near and ("did you mean  %s?"):format(near) or "it has " .. table.concat(names, ", "))
      end
      if type(number) ~= "number" or number - number ~= 0 then refuse(key, "a finite number", number) end
      set[key] = number
    end
    if set.std and set.std < 0 then refuse("std", "a number >= 0", set.std) end
    if set.low and set.low > set.high then refuse(given.low and "low" or "high", "low <= high", set) end
    one.fn = function(x) return kind.value(x, set) end
    return value
  end
end

function M.constructors(session)
  local made = { define = function(given) return M.define(session, given) end }
  for name, kind in pairs(M.names) do made[name] = constructor(session, name, kind) end
  return made
end

-- Returns the expression of the initial values of a state of `rows` by `columns`, and true if it depends on these numbers. nil if `value` is
-- not from t.init.
function M.of_state(session, value, rows, columns)
  local one = component.behind(value)
  if not one or one.namespace ~= "init" or not one.fn then return nil end
  local spec, read = tracing_of(session, one.fn, { rows = rows, columns = columns })
  return trace(spec).expression, next(read) ~= nil
end

return M
