-- AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137): AdamW with a second, slow mean of the gradients, as apple/ml-ademamix computes it.
local t = require "tycho"

-- A decay is interpolated by its half-life.
local function half_life(beta) return math.log(0.5) / t.log(beta + 1e-8) - 1 end

return t.optim.define {
  name = "ademamix",
  help = "AdEMAMix: AdamW with a second, slow mean of the gradients.",
  defaults = {
    betas = { 0.9, 0.999, 0.9999 },   -- of the fast mean, the squares, the slow mean
    alpha = t.number { default = 5, min = 0, help = "Weight of the slow mean in the update." },
    alpha_warmup = t.number { default = 0, min = 0, help = "Steps over which alpha grows from 0." },
    beta3_warmup = t.number { default = 0, min = 0, help = "Steps over which the third beta grows from the first." },
    eps = t.number { default = 1e-8, above = 0, help = "Added to the square root of the second moment." },
  },
  state = { exp_avg_fast = "like", exp_avg_slow = "like", exp_avg_sq = "like" },
  update = function(p, g, s, h)
    local beta1, beta2, beta3 = h.betas[1], h.betas[2], h.betas[3]
    local alpha = t.where(h.step:lt(h.alpha_warmup), h.alpha * h.step / h.alpha_warmup, h.alpha)
    local part = h.step / h.beta3_warmup
    local life = (1 - part) * half_life(beta1) + part * half_life(beta3)
    beta3 = t.where(h.step:lt(h.beta3_warmup), 0.5 ^ (1 / (life + 1)), beta3)
    s.exp_avg_fast = beta1 * s.exp_avg_fast + (1 - beta1) * g
    s.exp_avg_slow = beta3 * s.exp_avg_slow + (1 - beta3) * g
    s.exp_avg_sq = beta2 * s.exp_avg_sq + (1 - beta2) * g * g
    local root = t.sqrt(s.exp_avg_sq) / t.sqrt(1 - beta2 ^ h.step) + h.eps
    local step = (s.exp_avg_fast / (1 - beta1 ^ h.step) + alpha * s.exp_avg_slow) / root
    return p - h.lr * (step + h.weight_decay * p)
  end,
}
