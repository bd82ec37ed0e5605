-- Spaces that say how many values they have: range(0, 0.3, 0.1) and int(2, 8, 2) by their step, log(1e-4, 1e-2, 3) by its count.
-- Both ends are among them.
local values = require "tycho.values"

local M = {}

local kMaxValues = 10000

local function rounded(x) return tonumber(("%.10g"):format(x)) end

local function spaced(low, high, step)
  if not (step > 0) then   -- luacheck: ignore 581 (a NaN is refused too)
    return nil, ("a step above 0, got %s"):format(values.number_text(step))
  end
  local count = math.floor((high - low) / step + 1e-6)
  if count < 1 then return nil, ("a step of at most %s, got %s"):format(values.number_text(rounded(high - low)), values.number_text(step)) end
  if count >= kMaxValues then return nil, ("at most %d values, got %.0f"):format(kMaxValues, count + 1) end
  local out = {}
  for i = 0, count do out[i + 1] = rounded(low + i * step) end
  return out
end

-- The values between two ends, or nil and what was expected of the third number.
function M.values(kind, low, high, third)
  if type(third) ~= "number" then return nil, "a number as its third value" end
  if kind == "normal" then return nil, "two numbers" end
  if kind == "int" and (low % 1 ~= 0 or third % 1 ~= 0) then return nil, "integers" end
  if kind ~= "log" then return spaced(low, high, third) end
  if third % 1 ~= 0 or third < 2 or third > kMaxValues then
    return nil, ("a count of 2 to %d, got %s"):format(kMaxValues, values.number_text(third))
  end
  if low <= 0 then return nil, ("numbers above 0, got %s"):format(values.number_text(low)) end
  local out = {}
  for i = 1, third do out[i] = tonumber(("%.4g"):format(low * (high / low) ^ ((i - 1) / (third - 1)))) end
  out[1], out[third] = low, high
  return out
end

return M
