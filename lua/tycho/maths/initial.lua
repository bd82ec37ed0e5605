-- t.init.define: what the matrices of a model begin with, as a function of drawn numbers and of the matrix.
local component = require "tycho.component"
local functions = require "tycho.functions"
local native = require "tycho.native"
local node = require "tycho.node"
local own_kinds = require "tycho.own.kinds"
local own_value = require "tycho.maths.own_value"
local schema = require "tycho.schema"
local trace = require "tycho.maths.trace"

local M = {}

local kInputs = { { name = "normal" }, { name = "uniform" }, { name = "cut_normal" } }
local kFields = { "role", "layer", "layers", "rows", "columns", "fan_in", "fan_out", "residual" }
local kExample = "t.init.define(function(x, p) return x.normal * 0.02 end)"
local kSet = "%s.%s cannot be set: a matrix begins with what the function returns"
local kHint = ": there are normal, uniform, cut_normal"
local kOfMatrix = ": a matrix has " .. table.concat(kFields, ", ")

-- The matrices of the model of a finished recipe; none of a model that checks will refuse.
local function matrices_of(made)
  local model = made.root.values.model
  return model and native.init_matrices(require("tycho.recipe").text_tree(node.plain(model))) or {}
end

local function describe(matrix)
  return ("the %s matrix of layer %d, %d x %d"):format(matrix.role, matrix.layer, matrix.rows, matrix.columns)
end

-- The expression of one matrix, and what the function read of it.
local function value_of(session, fn, matrix)
  local read = {}
  local p = own_value.strict("p", matrix, kOfMatrix, kSet, function(key) read[key] = true end)
  local made = trace { session = session, fn = fn, inputs = kInputs, run = function(symbols)
    local value = fn(own_value.strict("x", symbols, kHint, kSet), p)
    if type(value) == "nil" then error(("the function returns nothing for %s"):format(describe(matrix)), 0) end
    return { value = value }
  end }
  return made.expression, read
end

-- Whether the function reads the same of two matrices.
local function are_alike(read, a, b)
  for key in pairs(read) do
    if a[key] ~= b[key] then return false end
  end
  return true
end

-- Adds a matrix to those of a formula: { role, first, last }, one for neighbouring layers.
local function add_matrix(formula, matrix)
  for _, range in ipairs(formula.of) do
    if range.role == matrix.role and range.last == matrix.layer - 1 then
      range.last = matrix.layer
      return
    end
  end
  formula.of[#formula.of + 1] = { role = matrix.role, first = matrix.layer, last = matrix.layer }
end

-- What the function computes: formulas of the matrices. It is called again for a matrix of which it might read something else.
local function formulas_of(session, fn, matrices)
  local formulas, calls, by_text = native.array {}, {}, {}
  for _, matrix in ipairs(matrices) do
    local found
    for _, call in ipairs(calls) do found = found or are_alike(call.read, call.matrix, matrix) and call.formula end
    if not found then
      local expression, read = value_of(session, fn, matrix)
      local text = schema.literal(expression)
      found = by_text[text]
      if not found then
        found = { of = native.array {}, expression = expression }
        by_text[text], formulas[#formulas + 1] = found, found
      end
      calls[#calls + 1] = { read = read, matrix = matrix, formula = found }
    end
    add_matrix(found, matrix)
  end
  return formulas
end

-- t.init.define(function(x, p) ... end): what r.init may be.
function M.define(session, given)
  if type(given) ~= "function" then session:refuse("define", "t.init.define expects a function of drawn numbers and of a matrix, such as  " .. kExample) end
  local ref, message = functions.keep(given)
  if not ref then session:refuse("define", message) end
  local site = own_value.site(session, given)
  local name = own_value.kind(session, "init", site)
  own_kinds.register(session, { namespace = "init", base = "defined", name = name, help = "Initial values of the recipe.", fields = {},
    table = "defaults", without = { "formulas", "code" }, site = site, functions = { ref }, definition = function(_, made)
      return { formulas = formulas_of(made.session, ref.fn, matrices_of(made)), code = { at = ref.at, hash = ref.hash } }
    end })
  return component.make("init", name, {}, site)
end

return M
