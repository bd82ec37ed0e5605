-- Types and help of what traced functions use.
local M = {}

local kUnary = { abs = "Absolute value.", sign = "-1, 0 or 1.", floor = "Largest integer that is not above x.", sqrt = "Square root.",
  rsqrt = "1 / sqrt(x).", exp = "Exponential.", tanh = "Hyperbolic tangent.", sigmoid = "1 / (1 + exp(-x)).", erf = "Error function." }

M.functions = {
  { "where", "fun(condition: tycho.Condition, a: tycho.Value, b: tycho.Value): tycho.Symbol", "a where the condition holds, else b." },
  { "min", "fun(a: tycho.Value, b: tycho.Value, ...: tycho.Value): tycho.Symbol", "The smallest; NaN if one is NaN." },
  { "max", "fun(a: tycho.Value, b: tycho.Value, ...: tycho.Value): tycho.Symbol", "The largest; NaN if one is NaN." },
  { "clamp", "fun(x: tycho.Value, low: tycho.Value, high: tycho.Value): tycho.Symbol", "x, at least low and at most high." },
  { "pow", "fun(x: tycho.Value, y: tycho.Value): tycho.Symbol", "x ^ y." },
  { "fma", "fun(a: tycho.Value, b: tycho.Value, c: tycho.Value): tycho.Symbol", "a * b + c, rounded once." },
  { "both", "fun(a: tycho.Condition, b: tycho.Condition): tycho.Condition", "Holds where both conditions hold." },
  { "either", "fun(a: tycho.Condition, b: tycho.Condition): tycho.Condition", "Holds where one of the conditions holds." },
  { "negate", "fun(condition: tycho.Condition): tycho.Condition", "Holds where the condition does not hold." },
}
local kMatrix = "fun(x: tycho.Value): tycho.Symbol"
for _, one in ipairs {
  { "mm", "fun(a: tycho.Symbol, b: tycho.Symbol): tycho.Symbol", "Product of two matrices." },
  { "transpose", kMatrix, "The transposed matrix." },
  { "qr", kMatrix, "Orthonormal columns that span those of x: Q of its QR decomposition." },
  { "eigh", "fun(x: tycho.Symbol): tycho.Symbol, tycho.Symbol", "Eigenvalues of a symmetric matrix, rising, as a row; eigenvectors as columns." },
  { "argsort", kMatrix, "Places of a row's numbers from the smallest to the largest." },
  { "take", "fun(x: tycho.Symbol, order: tycho.Symbol): tycho.Symbol", "Columns of x in this order." },
  { "every", "fun(n: number|tycho.Symbol|table, f: fun(): ..., ...: tycho.Value): ...",
    "What f returns in steps n, 2n, ..., else the values after it; { n = 10, from = 11 } begins at step 11." },
} do
  M.functions[#M.functions + 1] = one
end
for _, name in ipairs { "abs", "sign", "floor", "sqrt", "rsqrt", "exp", "tanh", "sigmoid", "erf" } do
  M.functions[#M.functions + 1] = { name, "fun(x: tycho.Value): tycho.Symbol", kUnary[name] }
end

M.types = [[
---@alias tycho.Value number|tycho.Symbol

---@class (exact) tycho.Condition  What x:gt(y) and its kin give; t.where chooses by it.

---@class (exact) tycho.Symbol  A number of the run in a traced function.
---@operator add(tycho.Value): tycho.Symbol
---@operator sub(tycho.Value): tycho.Symbol
---@operator mul(tycho.Value): tycho.Symbol
---@operator div(tycho.Value): tycho.Symbol
---@operator pow(tycho.Value): tycho.Symbol
---@operator unm: tycho.Symbol
---@field lt fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self < y.
---@field le fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self <= y.
---@field gt fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self > y.
---@field ge fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self >= y.
---@field eq fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self == y.
---@field ne fun(self: tycho.Symbol, y: tycho.Value): tycho.Condition  self ~= y.
---@field sum fun(self: tycho.Symbol, over: "row"|"column"|"matrix"|"tensor"): tycho.Symbol  Sum over each row or column, or all.
---@field mean fun(self: tycho.Symbol, over: "row"|"column"|"matrix"|"tensor"): tycho.Symbol  Mean.
---@field largest fun(self: tycho.Symbol, over: "row"|"column"|"matrix"|"tensor"): tycho.Symbol  Largest element.
---@field smallest fun(self: tycho.Symbol, over: "row"|"column"|"matrix"|"tensor"): tycho.Symbol  Smallest element.

---@class (exact) tycho.OptimizerDefinition
---@field name string  Name of the kind: t.optim.NAME.
---@field help? string  One sentence for people.
---@field defaults? table<string, any>  Hyperparameters with their defaults.
---@field state? table<string, "like"|"row"|"col"|"scalar"|table>|fun(p: tycho.Symbol): table  What it keeps of each parameter.
---@field update fun(p: tycho.Symbol, g: tycho.Symbol, s: table<string, tycho.Symbol>, h: table<string, any>): tycho.Value  The new weights.
---@field eval_weights? fun(p: tycho.Symbol, s: table<string, tycho.Symbol>, h: table<string, any>): tycho.Value  Weights of evaluations and exports.
]]

-- t.NAMESPACE.define: its type, what it makes, and an example.
M.defines = {
  optim = { "fun(given: tycho.OptimizerDefinition): fun(given?: table): tycho.Optim", "A kind of optimizer whose update is a function.",
    't.optim.define { name = "sign", update = function(p, g, s, h) return p - h.lr * t.sign(g) end }' },
  loss = { "fun(given: (fun(z: tycho.Token): tycho.Value)|table<string, fun(z: tycho.Token): tycho.Value>|tycho.LossDefinition): any",
    "A loss of what the classifier knows of a token; with terms, defaults and a name, a kind of loss.",
    "r.loss = t.loss.define(function(z) return z.lse - z.target + 1e-4 * z.lse ^ 2 end)" },
  act = { "fun(f: fun(x: tycho.Symbol): tycho.Symbol): tycho.Act", "An activation of feed-forwards: a function of one number.",
    "r.model.activation = t.act.define(function(x) return x * t.sigmoid(x) end)" },
  init = { "fun(f: fun(x: tycho.Drawn, p: tycho.Matrix): tycho.Value): tycho.Init", "What matrices begin with: a value for each element.",
    "r.init = t.init.define(function(x, p) return x.normal * 0.02 end)" },
}

-- The field `define` of the class of a namespace.
function M.define(namespace)
  local one = M.defines[namespace]
  return one and ("---@field define %s  %s"):format(one[1], one[2])
end

M.loss = [[
---@class (exact) tycho.Token  What the classifier knows of a token.
---@field lse tycho.Symbol  Log-sum-exp of its logits.
---@field target tycho.Symbol  Logit of its target.
---@field mean tycho.Symbol  Mean of its logits.
---@field max tycho.Symbol  Maximum of its logits.
---@field px tycho.Symbol  Mean of its logits under the softmax.
---@field weight tycho.Symbol  Weight that the data gives to its target, 1 without.
---@field position tycho.Symbol  Its position, from 0.

---@class (exact) tycho.LossDefinition
---@field name string  Name of the kind: t.loss.NAME.
---@field help? string  One sentence for people.
---@field defaults? table<string, any>  Hyperparameters with their defaults.
---@field terms fun(z: tycho.Token, h: table<string, any>): tycho.Value|table<string, fun(z: tycho.Token, h: table<string, any>): tycho.Value>  Terms of the sum.
]]

M.act = [[
---@class (exact) tycho.Act  An activation that a function defines.

---@class (exact) tycho.t.act
]] .. M.define "act" .. "\n"

M.init = [[
---@class (exact) tycho.Drawn  Numbers that are drawn for an element.
---@field normal tycho.Symbol  Standard normal.
---@field cut_normal tycho.Symbol  The normal number, drawn again while it is beyond 3 or -3.
---@field uniform tycho.Symbol  Uniform in [0, 1).

---@class (exact) tycho.Matrix  A matrix of the model.
---@field role "embedding"|"positions"|"head"|"q"|"k"|"v"|"qkv"|"out"|"gate"|"up"|"gate_up"|"down"  What it is.
---@field layer integer  Number of its block, from 1; 0 before the blocks, layers + 1 after them.
---@field layers integer  Number of blocks.
---@field rows integer  Rows, as it is stored.
---@field columns integer  Columns, as it is stored.
---@field fan_in integer  Inputs; a table's width.
---@field fan_out integer  Outputs; a table's rows.
---@field residual boolean  Whether its product is added to the residual stream: out and down.
]]

M.define_init = M.define "init"
  .. "\n---@field normal fun(given: { std: number? }): tycho.Init  Normal numbers, which the state of an own optimizer begins with."
  .. "\n---@field cut_normal fun(given: { std: number? }): tycho.Init  Normal numbers within three deviations, for state."
  .. "\n---@field uniform fun(given: { low: number?, high: number? }): tycho.Init  Uniform numbers, for state."

return M
