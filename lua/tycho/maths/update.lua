-- Traces an optimizer's update(p, g, s, h) and eval_weights(p, s, h): what their arguments are, and the data that the engine reads.
local component = require "tycho.component"
local initial = require "tycho.maths.initial"
local native = require "tycho.native"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"
local trace = require "tycho.maths.trace"

local M = {}

-- A table that has these fields alone; `assign` takes what is written to one of them. read(key): is told what is read.
local function strict(session, name, fields, assign, read)
  local function refuse(key)
    local names = schema.sorted_keys(fields)
    local near = schema.did_you_mean(key, names)
    session:refuse(tostring(key), ("no %s.%s"):format(name, tostring(key)), near and ("did you mean  %s.%s?"):format(name, near)
      or #names == 0 and name .. " has no fields" or ("%s has %s"):format(name, table.concat(names, ", ")))
  end
  local function is_absent(key) return type(fields[key]) == "nil" end   -- a symbol is compared with nothing
  return setmetatable({}, { __metatable = "strict",
    __index = function(_, key)
      if is_absent(key) then refuse(key) end
      if read then read(key) end
      return fields[key]
    end,
    __newindex = function(_, key, value)
      if not assign then session:refuse(tostring(key), ("%s.%s cannot be assigned here"):format(name, tostring(key))) end
      if is_absent(key) then refuse(key) end
      assign(key, value)
    end })
end

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

-- The table h: symbols in place of numbers.
local function hyperparameters(session, values, symbols)
  local h = { step = symbols["h.step"] }
  for key, value in pairs(values) do
    if type(value) == "table" then
      local list = {}
      for i, item in ipairs(value) do list[i] = symbols[("h.%s.%d"):format(key, i)] or item end
      h[key] = strict(session, "h." .. key, list)
    else
      h[key] = symbols["h." .. key] or value
    end
  end
  return strict(session, "h", h)
end

local kKinds = 'expected "like", one number for each of the parameter, "row", "col", "scalar", or { rows, columns }, or one of them that'
  .. ' begins with something else than 0, such as { "like", init = 1 } or { "like", init = t.init.normal { std = 0.02 } }'

local function is_size(x) return type(x) == "number" and x >= 1 and x % 1 == 0 and x < 2 ^ 31 end

-- The kind of a state, and what is given for it to begin with.
local function kind_of(session, name, given)
  if type(given) ~= "table" or given.init == nil then return given end
  local is_number = type(given.init) == "number" and given.init - given.init == 0
  if not is_number and not component.behind(given.init) then
    session:refuse("init", ("state.%s.init: expected a finite number or a value of t.init such as  t.init.normal { std = 0.02 }, got %s"):format(
      name, schema.brief(given.init)))
  end
  if #given == 1 then return given[1], given.init end
  return { given[1], given[2] }, given.init
end

-- A state as data: { name, shape or scalar = true where it has not a number for each of the parameter, init where it begins with
-- another number than 0, or with an expression }.
local function shape_of(session, name, kind, p)
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    session:refuse("state", ("state: expected names of letters, digits and '_', got %s"):format(schema.brief(name)))
  end
  if kind == "like" then return { name = name } end
  if kind == "scalar" then return { name = name, scalar = true } end
  if kind == "row" then return { name = name, shape = native.array { p.rows, 1 } } end
  if kind == "col" then return { name = name, shape = native.array { 1, p.columns } } end
  if type(kind) == "table" and #kind == 2 and is_size(kind[1]) and is_size(kind[2]) then
    return { name = name, shape = native.array { kind[1], kind[2] } }
  end
  session:refuse(name, ("state.%s: %s; got %s"):format(name, kKinds, schema.brief(kind)))
end

-- A state, and whether it depends on the shape of the parameter.
local function state_of(session, name, given, p)
  local kind, init = kind_of(session, name, given)
  local state, by_shape = shape_of(session, name, kind, p), nil
  local shape = state.shape or state.scalar and { 1, 1 } or { p.rows, p.columns }
  if component.behind(init) then
    state.init, by_shape = initial.of_state(session, init, shape[1], shape[2])
    if not state.init then session:refuse("init", ("state.%s.init: %s is what models begin with"):format(name, tostring(init))) end
  else
    state.init = init
  end
  return state, by_shape or state.shape ~= nil
end

-- The state of parameters like p, by name; and whether it depends on the shape.
local function states_of(session, given, p, values)
  local state, by_shape = given.state or {}, false
  if type(state) == "function" then
    local about = strict(session, "p", p, nil, function(key) by_shape = by_shape or key ~= "hidden_matrix" end)
    session.makes_states = true   -- what t.init.define is called for is no kind of the recipe
    state = state(about, strict(session, "h", values))
    session.makes_states = nil
  end
  if type(state) ~= "table" then
    session:refuse("state", "state returned " .. schema.brief(state), 'it returns a table such as  { exp_avg = "like" }')
  end
  local states = native.array {}
  for i, name in ipairs(schema.sorted_keys(state)) do
    local depends
    states[i], depends = state_of(session, name, state[name], p)
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
  for _, name in ipairs(about.numbers) do inputs[#inputs + 1] = { name = name, scalar = true } end
  return inputs
end

local function expect_result(session, given, what, result)
  if type(result) ~= "nil" then return end
  session:refuse(what, ("%s of %s returned nothing"):format(what, given.name), "end it with  return p: the new weights")
end

local function state_symbols(about, symbols)
  local now = {}
  for _, state in ipairs(about.states) do now[state.name] = symbols["s." .. state.name] end
  return now
end

-- What trace.lua needs of update and of eval_weights.
local function update_spec(session, given, about, shape)
  return { session = session, fn = given.update, inputs = inputs_of({ "p", "g" }, about, shape), run = function(symbols)
    local now, assigned = state_symbols(about, symbols), {}
    local s = strict(session, "s", now, function(name, value) now[name], assigned[name] = value, true end)
    local result = given.update(symbols.p, symbols.g, s, hyperparameters(session, about.values, symbols))
    expect_result(session, given, "update", result)
    local outputs = { p = result }
    for name in pairs(assigned) do outputs["s." .. name] = now[name] end
    return outputs
  end }
end

local function eval_weights_spec(session, given, about)
  local values, numbers = {}, {}   -- no step, so no learning rate
  for key, value in pairs(about.values) do values[key] = key ~= "lr" and value or nil end
  for _, name in ipairs(about.numbers) do numbers[#numbers + 1] = name ~= "h.lr" and name or nil end
  about = { values = values, numbers = numbers, states = about.states, p = about.p }
  return { session = session, fn = given.eval_weights, inputs = inputs_of({ "p" }, about), run = function(symbols)
    local s = strict(session, "s", state_symbols(about, symbols))
    local result = given.eval_weights(symbols.p, s, hyperparameters(session, values, symbols))
    expect_result(session, given, "eval_weights", result)
    return { p = result }
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
        got.scalar and ("write  0 * %s + x"):format(name) or 'a sum or mean over "row", "column" or "matrix" makes it smaller, a product with the parameter larger')
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
  for _, spec in ipairs(specs) do by_shape = recording.first(spec(session, given, about, matrix)).by_shape or by_shape end
  local made = {}
  for i, spec in ipairs(specs) do
    made[i] = trace(spec(session, given, about, by_shape and matrix or nil))
    check_shapes(session, given, made[i], about.states, by_shape and matrix or nil)
  end
  if made[2] and made[2].whole then
    session:refuse("eval_weights", "eval_weights works on elements: it cannot reduce", "keep what it needs as state, and compute it in update")
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
