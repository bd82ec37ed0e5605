-- Focal loss (Lin et al. 2017, arXiv:1708.02002): targets that the model already predicts count less.
local t = require "tycho"

return t.loss.define {
  name = "focal", help = "Cross-entropy times (1 - p)^gamma, p the probability of the target.",
  defaults = { gamma = t.number { default = 2, min = 0, help = "0: the cross-entropy." } },
  terms = function(z, h)
    local missing = t.max(1 - t.exp(z.target - z.lse), 1e-7)   -- the slope of x^gamma at 0 is infinite for small gamma
    return missing ^ h.gamma * (z.lse - z.target)
  end,
}
