-- SOAP (Vyas et al. 2024, arXiv:2409.11321), as nikhilvyas/SOAP computes it: Adam in the eigenvectors of Shampoo's averages. A side larger
-- than max_precond_dim has no basis, and vectors have none. The first step changes no weight: it only takes the first eigenvectors.
local t = require "tycho"

local function has_basis(p, side, h) return p.rows > 1 and side <= h.max_precond_dim end

-- To the bases and back.
local function project(x, left, right)
  if left then x = t.mm(t.transpose(left), x) end
  return right and t.mm(x, right) or x
end
local function project_back(x, left, right)
  if left then x = t.mm(left, x) end
  return right and t.mm(x, t.transpose(right)) or x
end

-- The next basis of an average: one round of power iteration, columns in the order of their eigenvalues; and this order.
local function renewed(average, basis)
  local power = t.mm(average, basis)
  local order = t.argsort(-(basis * power):sum("column"))
  return t.qr(t.take(power, order)), order
end

local function average_of(average, product, h)
  local beta = t.where(h.shampoo_beta:ge(0), h.shampoo_beta, h.betas[2])
  return beta * average + (1 - beta) * product
end

local function first_basis(average, basis)
  return t.every({ from = 1 }, function() return (select(2, t.eigh(average))) end, basis)
end

local function adam(p, g, s, h, left, right)
  local beta1, beta2, steps = h.betas[1], h.betas[2], h.step - 1
  return t.every({ n = 1, from = 2 }, function()
    local projected = project(g, left, right)
    local mean = beta1 * s.exp_avg + (1 - beta1) * projected
    local square = beta2 * s.exp_avg_sq + (1 - beta2) * projected * projected
    local size = h.lr * t.sqrt(1 - beta2 ^ steps) / (1 - beta1 ^ steps)
    local moved = p - size * project_back(mean / (t.sqrt(square) + h.eps), left, right)
    return moved * (1 - h.lr * h.weight_decay), mean, square
  end, p, s.exp_avg, s.exp_avg_sq)
end

return t.optim.define {
  name = "soap",
  help = "Adam in the eigenvectors of averages of the gradient's outer products.",
  defaults = {
    betas = { 0.95, 0.95 },
    shampoo_beta = t.number { default = -1, below = 1, help = "Decay of these averages. Default: that of the second moment." },
    eps = t.number { default = 1e-8, above = 0, help = "Added to the square root of the second moment." },
    precondition_frequency = t.integer { default = 10, min = 1, help = "Steps from one basis to the next." },
    max_precond_dim = t.integer { default = 10000, min = 1, help = "Largest side of a matrix that has a basis." },
  },
  state = function(p, h)
    local rows, columns = p.rows, p.columns
    local state = { exp_avg = "like", exp_avg_sq = "like" }
    if has_basis(p, rows, h) then state.left_average, state.left = { rows, rows }, { rows, rows } end
    if has_basis(p, columns, h) then state.right_average, state.right = { columns, columns }, { columns, columns } end
    return state
  end,
  update = function(p, g, s, h)
    local left, right = has_basis(p, p.rows, h) and s.left, has_basis(p, p.columns, h) and s.right
    p, s.exp_avg, s.exp_avg_sq = adam(p, g, s, h, left, right)
    -- A mean is rotated to a new basis; second moments are only put in the new order.
    local often = { n = h.precondition_frequency, from = h.precondition_frequency + 1 }
    if left then
      s.left_average = average_of(s.left_average, t.mm(g, t.transpose(g)), h)
      s.left, s.exp_avg, s.exp_avg_sq = t.every(often, function()
        local basis, order = renewed(s.left_average, left)
        return basis, t.mm(t.transpose(basis), t.mm(left, s.exp_avg)), t.transpose(t.take(t.transpose(s.exp_avg_sq), order))
      end, first_basis(s.left_average, left), s.exp_avg, s.exp_avg_sq)
    end
    if right then
      s.right_average = average_of(s.right_average, t.mm(t.transpose(g), g), h)
      s.right, s.exp_avg, s.exp_avg_sq = t.every(often, function()
        local basis, order = renewed(s.right_average, right)
        return basis, t.mm(t.mm(s.exp_avg, t.transpose(right)), basis), t.take(s.exp_avg_sq, order)
      end, first_basis(s.right_average, right), s.exp_avg, s.exp_avg_sq)
    end
    return p
  end,
}
