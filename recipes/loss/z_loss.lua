-- z-loss (PaLM, arXiv:2204.02311): keeps the log-sum-exp of the logits near 0.
local t = require "tycho"

return t.loss.define {
  name = "z_loss", help = "Cross-entropy, and a penalty of the squared log-sum-exp.",
  defaults = { coefficient = t.number { default = 1e-4, min = 0, help = "Weight of the penalty." } },
  terms = {
    entropy = function(z) return z.lse - z.target end,
    z = function(z, h) return h.coefficient * z.lse ^ 2 end,
  },
}
