-- Confidence penalty (Pereyra et al. 2017, arXiv:1701.06548): predictions of low entropy cost.
local t = require "tycho"

return t.loss.define {
  name = "confidence", help = "Cross-entropy less a share of the predictions' entropy.",
  defaults = { beta = t.number { default = 0.1, min = 0, help = "Weight of the entropy." } },
  terms = {
    entropy = function(z) return z.lse - z.target end,
    penalty = function(z, h) return h.beta * (z.px - z.lse) end,
  },
}
