-- Label smoothing: a share epsilon of each target is spread over the whole vocabulary (torch's label_smoothing).
local t = require "tycho"

return t.loss.define {
  name = "smoothed", help = "Cross-entropy with label smoothing.",
  defaults = { epsilon = t.number { default = 0.1, min = 0, below = 1, help = "Share that all tokens have." } },
  terms = function(z, h) return z.lse - (1 - h.epsilon) * z.target - h.epsilon * z.mean end,
}
