-- Unlikelihood (Welleck et al. 2019, arXiv:1908.04319): targets with a negative weight are to become unlikely.
-- The data has a column of weights: train_data.weights.
local t = require "tycho"

return t.loss.define {
  name = "unlikelihood", help = "Cross-entropy of targets, and -log(1 - p) of marked ones.",
  defaults = { alpha = t.number { default = 1, min = 0, help = "Weight of marked targets, in addition to their own." } },
  terms = {
    likely = function(z) return t.where(z.weight:lt(0), 0, z.lse - z.target) end,
    unlikely = function(z, h)
      local others = t.max(1 - t.exp(z.target - z.lse), 1e-6)
      return t.where(z.weight:lt(0), -h.alpha * t.log(others), 0)
    end,
  },
}
