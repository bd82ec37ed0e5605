-- Operations on whole matrices, and work that is not done in every step.
local recording = require "tycho.maths.recording"
local symbol = require "tycho.maths.symbol"

local M = { functions = {} }

-- Operations of so many matrices.
for op, count in pairs { mm = 2, transpose = 1, qr = 1, take = 2, argsort = 1 } do
  M.functions[op] = function(...)
    if select("#", ...) ~= count then
      recording.refuse(op, ("t.%s expects %d matri%s, got %d"):format(op, count, count == 1 and "x" or "ces", select("#", ...)))
    end
    return recording.operate(op, { n = count, ... })
  end
end

-- t.eigh(x): the eigenvalues of a symmetric matrix from the smallest on, as a row, and its eigenvectors, as columns.
function M.functions.eigh(x)
  return recording.operate("eigh_values", { n = 1, x }), recording.operate("eigh_vectors", { n = 1, x })
end

local function is_due(given)
  local step = recording.input "h.step"
  if type(given) ~= "table" then given = { n = given, from = given } end
  local due = recording.operate("eq", { n = 2, step, given.from })
  if not given.n then return due end
  local rounds = recording.operate("div", { n = 2, recording.operate("sub", { n = 2, step, given.from }), given.n })
  local whole = recording.operate("eq", { n = 2, recording.operate("floor", { n = 1, rounds }), rounds })
  return recording.operate("and", { n = 2, whole, recording.operate("ge", { n = 2, step, given.from }) })
end

-- t.every(n, f, a, b, ...): what f returns in steps n, 2n, ..., else a, b, ...; the work of f is left out in between.
-- t.every({ n = 10, from = 11 }, ...) begins at step 11; without n it is done in that step alone.
function M.functions.every(given, f, ...)
  local kept = { n = select("#", ...), ... }
  if type(f) ~= "function" or kept.n == 0 then
    recording.refuse("every", "t.every expects a function and a value for each that it returns", "s.q = t.every(10, function() return t.qr(x) end, s.q)")
  end
  local n = given
  if type(given) == "table" then n = given.n end
  if symbol.is(n) then recording.refuse_symbol("every", n, "t.every expects a whole number of steps, got") end
  if type(n) ~= "nil" and not (type(n) == "number" and n >= 1 and n % 1 == 0) then
    recording.refuse("every", ("t.every expects a whole number of steps from 1 on, got %s"):format(tostring(n)))
  end
  if type(given) == "table" and not given.from then recording.refuse("every", "t.every expects from = the first step") end
  local due = is_due(given)
  local fresh = { n = 0 }
  local function keep(...) fresh = { n = select("#", ...), ... } end
  keep(f())
  if fresh.n ~= kept.n then
    recording.refuse("every", ("the function of t.every returned %d values, and %d are kept between"):format(fresh.n, kept.n))
  end
  local out = {}
  for i = 1, kept.n do out[i] = recording.operate("every", { n = 3, due, fresh[i], kept[i] }) end
  return unpack(out, 1, kept.n)
end

return M
