-- Tracing: what a function of a recipe computes, as an expression that C++ checks, simplifies and runs.
--
--   local made = trace { session = session, fn = update, inputs = { { name = "p" }, { name = "h.lr", scalar = true } },
--     run = function(symbols) return { p = update(symbols.p, symbols["h.lr"]) } end }
--
-- fn: the function of the recipe. inputs: { name, scalar = true for a number of the run, shape = { rows, columns }, fields = plain
-- values that the function may read of this symbol, such as p.rows }. run(symbols) calls fn with symbols of the inputs, by name, and
-- returns the outputs by name: symbols or numbers. It is called several times and must do the same each time.
-- Returns { expression = its data, as recipes and checkpoints keep it, text = the formulas for people, by_shape = true where the
-- function reads shapes or reduces }. Everything that cannot be traced is a problem of the recipe at its line, and ends it.
local native = require "tycho.native"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"

local kMostRepeats = 64
local kMostRepeated = 50000   -- operations of all repeats

-- Patterns of answers: all true, one comparison false at a time, all false, then mixtures.
local function answers(comparisons)
  local count = #comparisons
  local index = {}
  for i, node in ipairs(comparisons) do index[node] = i end
  return function(round)
    if round == 1 then return function() return true end end
    if round <= count + 1 then return function(node) return index[node] ~= round - 1 end end
    if round == count + 2 then return function() return false end end
    return function(node) return native.uniform(round, "answers", index[node]) < 0.5 end
  end
end

local function comparisons_of(recorded)
  local out = {}
  for _, done in ipairs(recorded.done) do
    if done.is_comparison then out[#out + 1] = done.result.node end
  end
  return out
end

local function check_by_repeating(spec, recorded)
  local comparisons = comparisons_of(recorded)
  local pattern = answers(comparisons)
  local rounds = #comparisons == 0 and 1 or math.min(#comparisons + kMostRepeats, math.max(8, math.floor(kMostRepeated / #recorded.done)))
  for round = 1, rounds do recording.again(spec, recorded, pattern(round)) end
end

local function data_of(inputs, recorded)
  local data = { inputs = native.array {}, nodes = native.array(recorded.nodes), outputs = native.array {},
    lines = native.array(recorded.lines) }
  for i, input in ipairs(inputs) do data.inputs[i] = { name = input.name, scalar = input.scalar, shape = input.shape } end
  for i, name in ipairs(schema.sorted_keys(recorded.outputs)) do
    data.outputs[i] = { name = name, node = recorded.outputs[name].node }
  end
  return data
end

-- What C++ found wrong, at the line that its message begins with.
local function refuse(spec, message)
  local file, line, what = message:match "^(.-):(%d+): (.*)$"
  if not file or not spec.session.sources[file] then
    file, line = place_of.of(spec.session, spec.fn, "return")
    what = message
  end
  place_of.refuse(spec.session, file, tonumber(line), "", what)
end

return function(spec)
  local recorded = recording.first(spec)
  check_by_repeating(spec, recorded)
  local made, message = native.expression(data_of(spec.inputs, recorded))
  if not made then refuse(spec, message) end
  made.by_shape = recorded.by_shape
  return made
end
