-- Schedule-Free AdamW (Defazio et al. 2024, arXiv:2405.15682), as facebookresearch/schedule_free computes it. Training runs at y; z takes the
-- steps; evaluation and export have the average x of z, so that no decay of the learning rate is needed: use t.sched.constant with t_warmup.
local t = require "tycho"

return t.optim.define {
  name = "schedule_free",
  help = "Schedule-Free AdamW: evaluates an average of its weights, and needs no decay of the learning rate.",
  defaults = {
    betas = { 0.9, 0.999 },
    r = t.number { default = 0, min = 0, help = "Power of the step in the weights of the average." },
    weight_lr_power = t.number { default = 2, min = 0, help = "Power of the largest learning rate so far in these weights." },
    eps = t.number { default = 1e-8, above = 0, help = "Added to the square root of the second moment." },
  },
  state = { z = "like", exp_avg_sq = "like", lr_max = "scalar", weight_sum = "scalar" },
  update = function(p, g, s, h)
    local beta1, beta2 = h.betas[1], h.betas[2]
    local z = t.where(h.step:eq(1), p, s.z)
    s.lr_max = t.max(s.lr_max, h.lr)
    local weight = h.step ^ h.r * s.lr_max ^ h.weight_lr_power
    s.weight_sum = s.weight_sum + weight
    local share = t.where(s.weight_sum:gt(0), weight / s.weight_sum, 0)
    s.exp_avg_sq = beta2 * s.exp_avg_sq + (1 - beta2) * g * g
    local step = g / (t.sqrt(s.exp_avg_sq / (1 - beta2 ^ h.step)) + h.eps) + h.weight_decay * p
    s.z = z - h.lr * step
    return p + share * (z - p) + h.lr * (beta1 * (1 - share) - 1) * step
  end,
  eval_weights = function(p, s, h) return p + (1 - 1 / h.betas[1]) * (s.z - p) end,
}
