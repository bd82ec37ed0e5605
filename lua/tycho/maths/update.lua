-- Traces an optimizer's update(p, g, s, h) and eval_weights(p, s, h): what their arguments are, and the data that the engine reads.
local component = require "tycho.component"
local initial = require "tycho.maths.initial"
local native = require "tycho.native"
local own_value = require "tycho.maths.own_value"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local symbol = require "tycho.maths.symbol"
local trace = require "tycho.maths.trace"

local M = {}

-- The names of inputs for numbers among the hyperparameters: "h.lr", "h.betas.1". Integers are plain numbers of Lua.
local function numbers_of(values, integers)
  local names = { "h.step" }
  for _, key in ipairs(schema.sorted_keys(values)) do
    local value = values[key]
    if integers[key] then value = nil end
    if type(value) == "number" then names[#names + 1] = "h." .. key end
    for i, item in ipairs(type(value) == "table" and value or {}) do
      if type(item) == "number" then names[#names + 1] = ("h.%s.%d"):format(key, i) end
    end
  end
  return names
end

local kKinds = 'expected "like", one number for each of the parameter, "row", "col", "scalar", or { rows, columns }, or one of them that'
  .. ' begins with something else than 0, such as { "like", init = 1 } or { "like", init = t.init.normal { std = 0.02 } }'

local function is_size(x) return type(x) == "number" and x >= 1 and x % 1 == 0 and x < 2 ^ 31 end

-- Reports what is wrong with a state: at its key, or where the function of states returns it.
local function refuse_state(session, given, name, message, hint)
  if type(given.state) == "function" then
    local file, line = place_of.of(session, given.state, tostring(name))
    place_of.refuse(session, file, line, tostring(name), message, hint)
  end
  session:refuse_at(site_of.child(site_of.child(given.site, "state"), name), message, hint)
end

-- The kind of a state, and what is given for it to begin with.
local function kind_of(session, given, name, state)
  if type(state) ~= "table" or state.init == nil then return state end
  local is_number = type(state.init) == "number" and state.init - state.init == 0
  if not is_number and not component.behind(state.init) then
    refuse_state(session, given, name, ("state.%s.init: expected a finite number or a value of t.init such as  t.init.normal { std = 0.02 }, got %s"):format(
      name, schema.brief(state.init)))
  end
  if #state == 1 then return state[1], state.init end
  return { state[1], state[2] }, state.init
end

-- A state as data: { name, shape or scalar = true where it has not a number for each of the parameter, init where it begins with
-- another number than 0, or with an expression }.
local function shape_of(session, given, name, kind, p)
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    refuse_state(session, given, name, ("state: expected names of letters, digits and '_', got %s"):format(schema.brief(name)), 'write  state = { m = "like" }')
  end
  if kind == "like" then return { name = name } end
  if kind == "scalar" then return { name = name, scalar = true } end
  if kind == "row" then return { name = name, shape = native.array { p.rows, 1 } } end
  if kind == "col" then return { name = name, shape = native.array { 1, p.columns } } end
  if type(kind) == "table" and #kind == 2 and is_size(kind[1]) and is_size(kind[2]) then
    return { name = name, shape = native.array { kind[1], kind[2] } }
  end
  refuse_state(session, given, name, ("state.%s: %s; got %s"):format(name, kKinds, schema.brief(kind)))
end

-- A state, and whether it depends on the shape of the parameter.
local function state_of(session, given, name, one, p)
  local kind, init = kind_of(session, given, name, one)
  local state, by_shape = shape_of(session, given, name, kind, p), nil
  local shape = state.shape or state.scalar and { 1, 1 } or { p.rows, p.columns }
  if component.behind(init) then
    state.init, by_shape = initial.of_state(session, init, shape[1], shape[2])
    if not state.init then refuse_state(session, given, name, ("state.%s.init: %s is what models begin with"):format(name, tostring(init))) end
  else
    state.init = init
  end
  return state, by_shape or state.shape ~= nil
end

-- The state of parameters like p, by name; and whether it depends on the shape.
local function states_of(session, given, p, values)
  local state, by_shape = given.state or {}, false
  if type(state) == "function" then
    local about = own_value.strict(session, "p", p, { read = function(key) by_shape = by_shape or key ~= "hidden_matrix" end })
    local h, check_lists = own_value.hyperparameters(session, given.state, values, {})
    session.makes_states = true   -- what t.init.define is called for is no kind of the recipe
    state = state(about, h)
    session.makes_states = nil
    check_lists()
  end
  if type(state) ~= "table" then
    refuse_state(session, given, "return", "the function of state returned " .. schema.brief(state), 'it returns a table such as  { exp_avg = "like" }')
  end
  local states = native.array {}
  for i, name in ipairs(schema.sorted_keys(state)) do
    local depends
    states[i], depends = state_of(session, given, name, state[name], p)
    by_shape = by_shape or depends
  end
  return states, by_shape
end

-- Inputs of a trace. shape: nil for elements of any parameters.
local function inputs_of(first, about, shape)
  local inputs = {}
  for _, name in ipairs(first) do inputs[#inputs + 1] = { name = name, shape = shape, fields = name == "p" and about.p or nil } end
  for _, state in ipairs(about.states) do
    inputs[#inputs + 1] = { name = "s." .. state.name, scalar = state.scalar, shape = state.shape or not state.scalar and shape or nil }
  end
  for _, name in ipairs(about.numbers) do inputs[#inputs + 1] = { name = name, scalar = true, value = about.values[name:sub(3)] } end
  return inputs
end

local function state_symbols(about, symbols)
  local now = {}
  for _, state in ipairs(about.states) do now[state.name] = symbols["s." .. state.name] end
  return now
end

local kNoState = 'write  state = { m = "like" }  in t.optim.define'
local kReturn = "end it with  return p: the new weights"

-- The table s of a call, whose fields are assigned; `now` and `assigned` follow.
local function state_table(session, now, assigned)
  return own_value.strict(session, "s", now, { none = kNoState, assign = function(name, value)
    if type(value) ~= "number" and type(value) ~= "boolean" and not symbol.is(value) then
      recording.refuse(name, ("s.%s = %s: expected a number or a symbol"):format(name, schema.brief(value)),
        type(value) == "nil" and "state cannot be removed; a function without  return  gives nil, too" or nil)
    end
    now[name], assigned[name] = value, true
  end })
end

-- What trace.lua needs of update and of eval_weights.
local function update_spec(session, given, about, shape)
  return { session = session, fn = given.update, inputs = inputs_of({ "p", "g" }, about, shape), result = "p",
    nothing = ("update of %s returned nothing"):format(given.name), instead = kReturn, rest = "state is assigned:  s.NAME = ...;  ",
    run = function(symbols)
      local now, assigned = state_symbols(about, symbols), {}
      local h, check_lists = own_value.hyperparameters(session, given.update, about.values, symbols)
      local outputs = { p = recording.single(given.update(symbols.p, symbols.g, state_table(session, now, assigned), h)) }
      check_lists()
      for name in pairs(assigned) do outputs["s." .. name] = now[name] end
      return outputs
    end }
end

local function eval_weights_spec(session, given, about)
  local values, numbers = {}, {}   -- no step, so no learning rate
  for key, value in pairs(about.values) do values[key] = key ~= "lr" and value or nil end
  for _, name in ipairs(about.numbers) do numbers[#numbers + 1] = name ~= "h.lr" and name or nil end
  about = { values = values, numbers = numbers, states = about.states, p = about.p }
  local shapes = {}
  for _, state in ipairs(about.states) do shapes[state.name] = state.shape end
  local function read(name)
    local shape = shapes[name]
    if not shape then return end
    session:refuse(name, ("eval_weights works on elements, and s.%s is [%d, %d]"):format(name, shape[1], shape[2]),
      'keep what it needs as state "like", and compute it in update')
  end
  return { session = session, fn = given.eval_weights, inputs = inputs_of({ "p" }, about), result = "p",
    nothing = ("eval_weights of %s returned nothing"):format(given.name), instead = kReturn, run = function(symbols)
      local s = own_value.strict(session, "s", state_symbols(about, symbols), { none = kNoState, fixed = "update assigns state", read = read })
      local h, check_lists = own_value.hyperparameters(session, given.eval_weights, values, symbols)
      local outputs = { p = recording.single(given.eval_weights(symbols.p, s, h)) }
      check_lists()
      return outputs
    end }
end

local function shape_text(shape)
  if shape.scalar then return "one number" end
  return shape.rows == 0 and "one number for each of the parameter" or ("[%d, %d]"):format(shape.rows, shape.columns)
end

-- What may replace the parameter or a state: its shape; whether one number may be given for all.
local function wanted_shape(states, name, whole)
  for _, state in ipairs(states) do
    if name == "s." .. state.name and state.scalar then return { scalar = true }, false end
    if name == "s." .. state.name and state.shape then return { rows = state.shape[1], columns = state.shape[2] }, false end
  end
  return whole and { rows = whole[1], columns = whole[2] } or { rows = 0, columns = 0 }, true
end

-- What to write where a result has another shape than what it replaces.
local function advice(name, wanted, got)
  if wanted.scalar then
    return ('"scalar" is one number that is computed from other such numbers alone, such as h.step; for x:sum("matrix") write  state = { %s = { 1, 1 } }'):format(name:match "[^.]*$")
  end
  if got.scalar then return ("write  0 * %s + x"):format(name) end
  if got.rows == 1 and got.columns == 1 then return ("write  0 * %s + x,  or state { 1, 1 }"):format(name) end
  return 'a sum or mean over "row", "column" or "matrix" makes it smaller, a product with the parameter larger'
end

-- Refuses results of another shape than what they replace.
local function check_shapes(session, given, made, states, whole)
  for _, name in ipairs(schema.sorted_keys(made.outputs)) do
    local got = made.outputs[name]
    local wanted, takes_one = wanted_shape(states, name, whole)
    local fits = got.scalar == (wanted.scalar or false) and (got.scalar or got.rows == wanted.rows and got.columns == wanted.columns)
    if not fits and not (takes_one and (got.scalar or got.rows == 1 and got.columns == 1)) then
      local file, line = got.at:match "^(.*):(%d+)$"
      if not file then file, line = place_of.of(session, given.update, "return") end
      place_of.refuse(session, file, tonumber(line), name:match "[^.]*$", ("%s: expected %s, got %s"):format(
        name == "p" and "the new p" or name, shape_text(wanted), shape_text(got)),
        advice(name, wanted, got))
    end
  end
end

-- What the engine does with parameters of one shape, or of all where the shape does not matter: see DefinedOptimizerConfig.
local function update_of(session, given, about, parameter)
  local size = parameter.shape
  local matrix = #size == 2 and size or { 1, size[1] }
  about.p = { hidden_matrix = parameter.hidden_matrix, rows = matrix[1], columns = matrix[2] }
  local by_shape
  about.states, by_shape = states_of(session, given, about.p, about.values)
  local specs = { update_spec, given.eval_weights and eval_weights_spec }
  for i, spec in ipairs(specs) do
    local recorded = recording.first(spec(session, given, about, matrix))
    if i == 2 and recorded.whole then
      local at = recorded.whole
      place_of.refuse(session, at.file, at.line, at.op, "eval_weights works on elements: it cannot reduce", "keep what it needs as state, and compute it in update")
    end
    by_shape = recorded.by_shape or by_shape
  end
  local made = {}
  for i, spec in ipairs(specs) do
    made[i] = trace(spec(session, given, about, by_shape and matrix or nil))
    check_shapes(session, given, made[i], about.states, i == 1 and by_shape and matrix or nil)   -- eval_weights sees elements
  end
  return { hidden = parameter.hidden_matrix, shape = by_shape and size or nil, whole = made[1].whole, states = about.states,
    expression = made[1].expression, eval_weights = made[2] and made[2].expression }
end

-- Traces for every shape of parameter that the update meets; once where shapes do not matter. values: the tree of the component;
-- integers: names of its fields that are plain integers; parameters: { hidden_matrix, shape } of the model, each once.
function M.updates(session, given, values, integers, parameters)
  local about = { values = values, numbers = numbers_of(values, integers) }
  local updates, of_any_shape = native.array {}, {}
  for _, parameter in ipairs(parameters) do
    if not of_any_shape[parameter.hidden_matrix] then
      local made = update_of(session, given, about, parameter)
      of_any_shape[parameter.hidden_matrix] = made.shape == nil
      updates[#updates + 1] = made
    end
  end
  return updates
end

return M
