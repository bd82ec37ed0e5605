-- Cautious AdamW (Liang et al. 2024, arXiv:2411.16085): no step against the newest gradient, as kyleliang919/C-Optim computes it.
local t = require "tycho"

return t.optim.define {
  name = "cautious_adamw",
  help = "AdamW that leaves out what the newest gradient contradicts.",
  defaults = {
    betas = { 0.9, 0.999 },
    eps = t.number { default = 1e-6, above = 0, help = "Added to the square root of the second moment." },
  },
  state = { exp_avg = "like", exp_avg_sq = "like" },
  update = function(p, g, s, h)
    local beta1, beta2 = h.betas[1], h.betas[2]
    s.exp_avg = beta1 * s.exp_avg + (1 - beta1) * g
    s.exp_avg_sq = beta2 * s.exp_avg_sq + (1 - beta2) * g * g
    local agrees = t.where((s.exp_avg * g):gt(0), 1, 0)
    local mask = agrees / t.max(agrees:mean("tensor"), 1e-3)   -- the step keeps its size on average
    local size = h.lr * t.sqrt(1 - beta2 ^ h.step) / (1 - beta1 ^ h.step)
    return p * (1 - h.lr * h.weight_decay) - size * (s.exp_avg * mask / (t.sqrt(s.exp_avg_sq) + h.eps))
  end,
}
