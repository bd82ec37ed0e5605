-- Calls of a function on symbols. The first one records its operations. Later ones answer its comparisons with true and false
-- and must do the same operations: a symbol is always true to `if`, `and`, `or` and `not`, which cannot be seen otherwise.
local errors = require "tycho.errors"
local habits = require "tycho.hints.habits"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local numbers = require "tycho.maths.numbers"
local place_of = require "tycho.maths.place"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local symbol = require "tycho.maths.symbol"

local M = {}

M.most_nodes = 4096   -- kMostNodes of trainer/expression/expression.h
local kMostInstructions, kMostSeconds = 1e7, 5   -- of one call

local kIfHint = "a symbol is always true to if, and, or and not; write  t.where(condition, a, b), and between conditions"
  .. "  t.both, t.either, t.negate"
local kKept = "a symbol was kept and is used later: it stands for numbers of one call of a function"
local kKeptHint = "what later steps need is state of the optimizer; what all calls need is a plain number"

local kOther = "another formula"

local kLogic = { ["and"] = true, ["or"] = true, ["not"] = true }
local kOfMatrices = { mm = true, transpose = true, take = true, argsort = true, qr = true, eigh_values = true, eigh_vectors = true }
local kChoices = { where = true, every = true }
local kComparisons = { lt = true, le = true, gt = true, ge = true, eq = true, ne = true }

local num_calls = 0   -- in this Lua state; each has its number, and its symbols too
local call            -- the one under way

-- Reports at a name on the running line, and ends the recipe. Outside of traced functions this is an error like others.
function M.refuse(name, message, hint)
  if not call then error(hint and message .. "; " .. hint or message, 0) end
  local spec = call.spec
  local file, line = place_of.of(spec.session, spec.fn, name)
  place_of.refuse(spec.session, file, line, name, message, hint)
end

local function refuse_value(op, value)
  if value == nil then M.refuse(op, "expected a number or a symbol, got nil", "a field that does not exist is nil, and so is a local before it is set") end
  M.refuse(op, "expected a number or a symbol, got " .. schema.describe_value(value))
end

local function add_node(node, place)
  if #call.nodes == M.most_nodes then
    M.refuse(node[1], ("the function does more than %d operations"):format(M.most_nodes), "is a loop longer than you meant?")
  end
  local value = { node = #call.nodes }
  call.values[value.node] = value
  call.nodes[#call.nodes + 1] = node
  call.lines[#call.nodes] = place
  return value
end

local function number_text(x)
  if x ~= x then return "nan" end
  if x == math.huge or x == -math.huge then return x > 0 and "inf" or "-inf" end
  return x == 0 and 1 / x < 0 and "-0" or x   -- JSON has none of these
end

local function of_symbol(op, x)
  local owner, node = symbol.parts(x)
  if not call or owner ~= call.id then M.refuse(op, kKept, kKeptHint) end
  return call.values[node]
end

-- What is recorded of a value: { node, condition = true for booleans, number or always = that of a constant }.
local function record_value(op, x, place)
  if symbol.is(x) then return of_symbol(op, x) end
  if type(x) == "number" then
    local value = add_node({ "number", number_text(x) }, place)
    value.number = x
    return value
  end
  if type(x) ~= "boolean" then refuse_value(op, x) end
  local zero = add_node({ "number", 0 }, place).node
  local value = add_node({ x and "eq" or "ne", zero, zero }, place)
  value.condition, value.always = true, x
  return value
end

local function check_kinds(op, values)
  local function expect(i, condition)
    if (values[i].condition or false) == condition then return end
    if condition then M.refuse(op, "expected a condition such as x:gt(y), got a number") end
    M.refuse(op, "expected a number, got a condition", "t.where(condition, 1, 0)  makes a number of it")
  end
  if not kChoices[op] then
    for i = 1, #values do expect(i, kLogic[op] or false) end
    return
  end
  expect(1, true)
  if values[2].condition ~= values[3].condition then
    M.refuse(op, "expected two numbers or two conditions to choose from, got one of each")
  end
end

local function record(op, operands, count, axis)
  local file, line = place_of.of(call.spec.session, call.spec.fn, op)
  local place = line and ("%s:%d"):format(file, line) or ""
  local node, values = { op }, {}
  for i = 1, count do
    values[i] = record_value(op, operands[i], place)
    node[i + 1] = values[i].node
  end
  check_kinds(op, values)
  node[#node + 1] = axis
  if axis or kOfMatrices[op] then call.by_shape, call.whole = true, call.whole or { op = op, file = file, line = line } end
  local result = add_node(node, place)
  result.condition = kComparisons[op] or kLogic[op] or op == "where" and values[2].condition or nil
  call.done[#call.done + 1] = { op = op, values = values, axis = axis, result = result, file = file, line = line,
    is_comparison = kComparisons[op] }
  return symbol.new(call.id, result.node)
end

local function truth(value)
  if value.always ~= nil then return value.always end
  return call.truth[value.node]
end

-- Returns true if a value of this call is the recorded one. Where numbers may be others, they are kept.
local function is_recorded(op, value, x)
  if value.condition then return x == truth(value) end
  if value.number and call.numbers and type(x) == "number" then
    call.numbers[value.node] = x
    return true
  end
  if value.number then return x == value.number or x ~= x and value.number ~= value.number end
  if not symbol.is(x) then return false end
  return of_symbol(op, x) == value
end

local function truth_of(done)
  local a, b, c = unpack(done.values)
  if done.op == "and" then return truth(a) and truth(b) end
  if done.op == "or" then return truth(a) or truth(b) end
  if done.op == "not" then return not truth(a) end
  if done.op == "where" then return truth(truth(a) and b or c) end
  local answer = call.answer(done.result.node)
  if not answer then call.denied = done end
  return answer
end

-- Ends the recipe, or a call whose numbers may be others: it does not do what the recorded one did, at this operation or in
-- what it returns.
local function differs(done)
  if call.numbers then
    call.is_other = true
    error(kOther, 0)
  end
  local decider = call.denied
  local at = decider or done or {}
  local message, hint = "the function did something else when it was called again", "it may depend on its arguments alone"
  if decider then
    local elsewhere = done and done.line and done.line ~= decider.line
    message = ("what is computed%s depends on whether this comparison holds"):format(
      elsewhere and (" at %s:%d"):format(done.file, done.line) or "")
    hint = kIfHint
  end
  local file, line = at.file, at.line
  if not file then file, line = place_of.of(call.spec.session, call.spec.fn, "return") end
  place_of.refuse(call.spec.session, file, line, at.op or "return", message, hint)
end

local function repeat_operation(op, operands, count, axis)
  call.at = call.at + 1
  local done = call.done[call.at]
  if not done or done.op ~= op or done.axis ~= axis or #done.values ~= count then differs(done) end
  for i, value in ipairs(done.values) do
    if not is_recorded(op, value, operands[i]) then differs(done) end
  end
  if not done.result.condition then return symbol.new(call.id, done.result.node) end
  local holds = truth_of(done)
  call.truth[done.result.node] = holds
  return holds
end

-- Does an operation outside of traced functions, on plain numbers and conditions.
local function compute(op, operands, count, axis)
  local kinds = {}
  for i = 1, count do
    local x = operands[i]
    if symbol.is(x) then M.refuse(op, kKept, kKeptHint) end
    if type(x) ~= "number" and type(x) ~= "boolean" then refuse_value(op, x) end
    kinds[i] = { condition = type(x) == "boolean" }
  end
  if axis or kOfMatrices[op] then M.refuse(op, ("%s works on matrices, in the update of t.optim.define"):format(op)) end
  check_kinds(op, kinds)
  return numbers[op](operands[1], operands[2], operands[3])
end

-- The result of an operation on plain numbers alone, while a function is traced, too; nil for others, for NaN, which C++ reports, and
-- for pow, since Lua's ^ may differ from C++ in the last bit.
local function plain_result(op, operands, count)
  for i = 1, numbers.folded[op] and count or 0 do
    if type(operands[i]) ~= "number" then return nil end
  end
  local result = numbers.folded[op] and numbers[op](operands[1], operands[2], operands[3])
  return result == result and result or nil
end

-- Does an operation on numbers, symbols and conditions. `axis`: of a reduction.
function M.operate(op, operands, axis)
  local count = operands.n or #operands
  if not call then return compute(op, operands, count, axis) end
  if call.inputs then return numbers[op](operands[1], operands[2], operands[3]) end
  local does = call.truth and repeat_operation or record   -- constants, too: so the order of nodes does not depend on them
  local result = does(op, operands, count, axis)
  return plain_result(op, operands, count) or result
end

-- The symbol of the input of this name.
function M.input(name)
  if not call then M.refuse(name, "t.every chooses between steps: it works in the update of t.optim.define alone") end
  local index = call.index_of[name]
  if not index then M.refuse(name, ("there is no %s here"):format(name)) end
  return call.inputs and call.inputs[index + 1] or symbol.new(call.id, index)
end

-- The field `key` of an input's symbol, or nil.
function M.field(x, key)
  local fields = of_symbol(key, x).fields
  if not fields then return nil end
  if key == "rows" or key == "columns" then call.by_shape = true end
  return fields[key]
end

-- "p.columns", "p.rows": fields that symbols of the call under way have.
function M.field_names()
  local out = {}
  for _, input in ipairs(call.spec.inputs) do
    for _, key in ipairs(schema.sorted_keys(input.fields or {})) do out[#out + 1] = ("%s.%s"):format(input.name, key) end
  end
  return out
end

-- What to write in defaults so that this input is a plain number of Lua; nil for one that is not whole there.
local function as_integer(input)
  local name = input.name:match "^h%.([%a_][%w_]*)$"
  if not name or not input.value or input.value % 1 ~= 0 then return nil end
  return ("write  %s = t.integer { default = %d }  in defaults: %s is a plain number then"):format(name, input.value, input.name)
end

-- Refuses a symbol where the number itself is needed while the function is traced. message: "... expects ..., got".
function M.refuse_symbol(name, x, message)
  local input = call.spec.inputs[of_symbol(name, x).node + 1]
  M.refuse(name, ("%s %s"):format(message, input and input.name or "a symbol"), input and as_integer(input)
    or "it stands for numbers that the run will have; fields of t.integer and p.rows are plain numbers")
end

-- What to write where Lua itself could not use a symbol, as in  for i = 1, h.rounds do.
local function hint_of(text, file, line)
  local index = file and site_of.index(call.spec.session.sites, file)
  if not text:find "'for' .* must be a number" and not text:find "number expected, got cdata" then
    return index and select(2, habits.at_run(index, line, text))
  end
  for _, input in ipairs(call.spec.inputs) do
    local advice = as_integer(input)
    if advice and index and lexer.name(index, line, input.name:match "[^.]*$") then return advice end
  end
  return "a symbol is no number of Lua: it stands for numbers that the run will have; fields of t.integer and p.rows are plain numbers"
end

-- Returns the result of a function. Refuses further ones.
function M.single(...)
  local count = select("#", ...)
  if count > 1 then
    M.refuse("return", ("the function returns %d values, expected one"):format(count), (call.spec.rest or "") .. "return (f(x))  keeps the first of several")
  end
  return (...)
end

-- Makes `made` the call under way, of the function of a spec, while work() runs; returns what that gives.
local function during(spec, made, work)
  num_calls = num_calls + 1
  made.id, made.spec = num_calls, spec
  local outer = call
  call = made
  local ok, result = pcall(work)
  call = outer
  if not ok then error(result, 0) end
  return result
end

local function symbols_of(inputs)
  local symbols = {}
  for i, input in ipairs(inputs) do symbols[input.name] = call.inputs and call.inputs[i] or symbol.new(call.id, i - 1) end
  return symbols
end

-- Plain numbers have the methods of symbols while a function is called, and the fields of inputs where they stand for these.
local function meta_of_numbers(inputs)
  local fields = {}
  for _, input in ipairs(call.inputs and inputs or {}) do
    for key, value in pairs(input.fields or {}) do fields[key] = value end
  end
  return { __index = function(_, key) return M.methods[key] or fields[key] end }
end

-- What spec.run gives, within limits of its own; what it raises becomes a problem at its line.
local function outputs_of(spec)
  local symbols, before = symbols_of(spec.inputs), debug.getmetatable(0)
  debug.setmetatable(0, meta_of_numbers(spec.inputs))
  local ok, result = native.limited(function() return spec.run(symbols) end, kMostInstructions, kMostSeconds)
  debug.setmetatable(0, before)
  if ok then return result end
  if result == spec.session.stop_mark or errors.ends_run(result) then error(result, 0) end
  if call.numbers or call.inputs then return nil end
  local text = errors.text(result)
  local file, line = (type(result) == "table" and result.where or text):match "^(.-):(%d+)"
  if not spec.session.sources[file] then file, line = place_of.of(spec.session, spec.fn, "return") end
  line = tonumber(line)
  place_of.refuse(spec.session, file, line, "", spec.session.without_place(text), hint_of(text, file, line))
end

-- spec: { session, fn, inputs, run, ... }, see trace.lua. Records run(symbols): { nodes, lines, done, values, outputs, by_shape = true where
-- the shapes of inputs matter, whole = { op, file, line } of the first operation on whole matrices }.
function M.first(spec)
  local made = { nodes = {}, lines = {}, done = {}, values = {}, outputs = {}, index_of = {} }
  during(spec, made, function()
    for i, input in ipairs(spec.inputs) do
      add_node({ "input", i - 1 }, "").fields = input.fields
      made.index_of[input.name] = i - 1
    end
    local outputs = outputs_of(spec)
    if spec.result and type(outputs[spec.result]) == "nil" then M.refuse("return", spec.nothing or "the function returns nothing", spec.instead) end
    for _, name in ipairs(schema.sorted_keys(outputs)) do made.outputs[name] = record_value("return", outputs[name], "") end
  end)
  return made
end

-- Calls run(symbols), which may be of other numbers: these by node if it does the recorded operations on them, else nil.
function M.renumbered(spec, recorded)
  local made = setmetatable({ truth = {}, at = 0, numbers = {} }, { __index = recorded })
  return during(spec, made, function()
    local outputs = outputs_of(spec)
    local is_same = outputs and not made.is_other and made.at == #recorded.done
    for name, value in pairs(recorded.outputs) do
      is_same = is_same and is_recorded("return", value, outputs[name])
    end
    return is_same and made.numbers or nil
  end)
end

-- True while a function is called on plain numbers.
function M.is_on_numbers() return call ~= nil and call.inputs ~= nil end

-- Calls run on plain numbers. Returns its results, or nil where it raises an error.
function M.on_numbers(spec, inputs)
  local made = { inputs = inputs, index_of = {} }
  for i, input in ipairs(spec.inputs) do made.index_of[input.name] = i - 1 end
  return during(spec, made, function() return outputs_of(spec) end)
end

-- Calls run(symbols) again; answer(node) is what its comparisons give, by their nodes.
function M.again(spec, recorded, answer)
  local made = setmetatable({ truth = {}, at = 0, answer = answer }, { __index = recorded })
  during(spec, made, function()
    local outputs = outputs_of(spec)
    if made.at < #recorded.done then differs(recorded.done[made.at + 1]) end
    for name, value in pairs(recorded.outputs) do
      if not is_recorded("return", value, outputs[name]) then differs(nil) end
    end
  end)
end

return M
