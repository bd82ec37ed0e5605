-- Operations on plain numbers and conditions, by the names that expressions have for them; a matrix is one number here.
local native = require "tycho.native"

local M = {
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end,
  div = function(a, b) return a / b end, pow = function(a, b) return a ^ b end, neg = function(a) return -a end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end, gt = function(a, b) return a > b end,
  ge = function(a, b) return a >= b end, eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  mm = function(a, b) return a * b end, take = function(a) return a end, argsort = function() return 0 end,
  qr = function(a) return a < 0 and -1 or 1 end, eigh_vectors = function() return 1 end,
}

-- Those that C++ computes, with the bits of folded constants.
M.folded = {}
for op in ("abs sign floor sqrt rsqrt exp log tanh sigmoid erf min max fma clamp"):gmatch "%a+" do
  M.folded[op] = true
  M[op] = function(a, b, c) return native.operation(op, a, b, c) end
end

M["and"] = function(a, b) return a and b end
M["or"] = function(a, b) return a or b end
M["not"] = function(a) return not a end
local function chosen(condition, a, b)
  if condition then return a end
  return b
end
M.where, M.every = chosen, chosen
for _, op in ipairs { "sum", "mean", "largest", "smallest", "transpose", "eigh_values" } do M[op] = M.take end

return M
