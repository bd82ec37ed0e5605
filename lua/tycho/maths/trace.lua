-- Tracing: what a function of a recipe computes, as an expression that C++ checks, simplifies and runs.
--
--   local made = trace { session = session, fn = update, inputs = { { name = "p" }, { name = "h.lr", scalar = true } },
--     run = function(symbols) return { p = update(symbols.p, symbols["h.lr"]) } end }
--
-- fn: the function of the recipe. inputs: { name, scalar = true for a number of the run, shape = { rows, columns }, fields = plain
-- values that the function may read of this symbol, such as p.rows }. run(symbols) calls fn with symbols of the inputs, by name, and
-- returns the outputs by name: symbols or numbers. It is called several times and must do the same each time. result: the name of the output
-- that must be there; nothing, instead = message and hint where it is not; rest = a hint where the function returns several values.
-- Returns { expression = its data, as recipes and checkpoints keep it, text = the formulas for people, by_shape = true where the
-- function reads shapes or reduces, whole = true where it reduces, recorded }. Everything that cannot be traced is a problem of the recipe at its line, and ends it.
local native = require "tycho.native"
local place_of = require "tycho.maths.place"
local plain = require "tycho.maths.plain"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"

local kMostPatterns = 64      -- of answers: all there are to 6 comparisons
local kMostRepeated = 50000   -- operations of all repeats

-- What comparisons are told in each round: all true, one of them false at a time, then every pattern, or as many by chance.
local function answers(comparisons)
  local count, index = #comparisons, {}
  for i, node in ipairs(comparisons) do index[node] = i end
  local are_few = 2 ^ count <= kMostPatterns
  local function answer(round, i)
    local pattern = round - count - 2
    if pattern < 0 then return i ~= round - 1 end
    if are_few then return math.floor(pattern / 2 ^ (i - 1)) % 2 == 1 end
    return pattern > 0 and native.uniform(pattern, "answers", i) < 0.5
  end
  return function(round)
    return function(node) return answer(round, index[node]) end
  end, count == 0 and 1 or count + 1 + math.min(2 ^ count, kMostPatterns)
end

local function comparisons_of(recorded)
  local out = {}
  for _, done in ipairs(recorded.done) do
    if done.is_comparison then out[#out + 1] = done.result.node end
  end
  return out
end

local function check_by_repeating(spec, recorded)
  local pattern, rounds = answers(comparisons_of(recorded))
  rounds = math.min(rounds, math.max(8, math.floor(kMostRepeated / math.max(1, #recorded.done))))
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
  plain.check(spec, recorded)
  local made, message = native.expression(data_of(spec.inputs, recorded))
  if not made then refuse(spec, message) end
  made.by_shape, made.whole, made.recorded = recorded.by_shape, recorded.whole and true or nil, recorded
  return made
end
