-- NorMuon (Li et al. 2025, arXiv:2510.05491), as zichongli5/NorMuon computes it, in fp32: Muon whose rows have the same size on average.
-- Embeddings, head and vectors have AdamW, at lr x adamw_lr_scale.
local t = require "tycho"

local kA, kB, kC = 3.4445, -4.7750, 2.0315   -- Muon's quintic

local function norm(x) return t.sqrt((x * x):sum("matrix")) end

-- About the nearest matrix with orthogonal rows or columns. rows, columns: those of x.
local function orthogonal(x, rows, columns, rounds)
  local is_tall = rows > columns
  if is_tall then x = t.transpose(x) end
  x = x / (norm(x) + 1e-7)
  for _ = 1, rounds do
    local gram = t.mm(x, t.transpose(x))
    x = kA * x + t.mm(kB * gram + kC * t.mm(gram, gram), x)
  end
  return is_tall and t.transpose(x) or x
end

local function adamw(p, g, s, h)
  local beta1, beta2 = h.betas[1], h.betas[2]
  local lr = h.lr * h.adamw_lr_scale
  s.exp_avg = beta1 * s.exp_avg + (1 - beta1) * g
  s.exp_avg_sq = beta2 * s.exp_avg_sq + (1 - beta2) * g * g
  local step = s.exp_avg / (1 - beta1 ^ h.step) / (t.sqrt(s.exp_avg_sq / (1 - beta2 ^ h.step)) + h.eps)
  return p * (1 - lr * h.weight_decay) - lr * step
end

return t.optim.define {
  name = "normuon",
  help = "Muon with rows of the same size for the matrices of the blocks, AdamW for everything else.",
  defaults = {
    momentum = t.number { default = 0.95, min = 0, below = 1, help = "Decay of the mean of the gradients." },
    beta2 = t.number { default = 0.95, min = 0, below = 1, help = "Decay of the mean square of each row." },
    ns_steps = t.integer { default = 5, min = 1, max = 20, help = "Newton-Schulz iterations." },
    adamw_lr_scale = t.number { default = 0.015, above = 0, help = "Learning rate of what AdamW updates, as a share of lr." },
    betas = { 0.9, 0.95 },
    eps = t.number { default = 1e-10, above = 0, help = "AdamW's epsilon, added to the square root of the second moment." },
  },
  state = function(p)
    if p.hidden_matrix then return { momentum = "like", row_sq = "row" } end
    return { exp_avg = "like", exp_avg_sq = "like" }
  end,
  update = function(p, g, s, h)
    if not p.hidden_matrix then return adamw(p, g, s, h) end
    s.momentum = h.momentum * s.momentum + (1 - h.momentum) * g
    local x = orthogonal(h.momentum * s.momentum + (1 - h.momentum) * g, p.rows, p.columns, h.ns_steps)
    s.row_sq = h.beta2 * s.row_sq + (1 - h.beta2) * (x * x):mean("row")
    local even = x / (t.sqrt(s.row_sq) + 1e-10)
    local size = norm(x) / (norm(even) + 1e-10) * math.max(1, p.rows / p.columns) ^ 0.5
    return p * (1 - h.lr * h.weight_decay) - h.lr * (even * size)
  end,
}
