-- A small MPT, in 25 lines over its base.
local t = require "tycho"
local r = require "base.mpt" :extend "mpt-small"

r.model.width, r.model.layers, r.model.heads = 64, 2, 4
r.optimizer.lr = 6e-3
r.max_duration = "24ba"
r.eval.every   = "8ba"

-- ordinary Lua instead of interpolation, conditionals and config groups
if r.seq_len > 96 then
  r.micro_batch = "4sp"
  r.model.positions = "rope"
end

r.ckpt     = { every = "8ba", keep = 0, async = true }
r.profile  = t.profile { wait = "2ba", warmup = "1ba", active = "1ba", ranks = { 0 } }
r.run_name = ("mpt-small-lr%g"):format(r.optimizer.lr)

r:check("tokens", function(c)                      -- after every argument, before anything starts
  return c.total_tokens <= 1e6, "a small model past a million tokens: is max_duration right?"
end)
return r
