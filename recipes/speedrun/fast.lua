-- Reaches the validation loss of nanogpt.lua, its base, with a fourteenth of its arithmetic: one block, a sixth of the steps,
-- Muon (bench/results/speedrun.md). Most of it is Muon with a high rate and norms of queries and keys.
local t = require "tycho"
local r = require "nanogpt" :extend "speedrun-fast"

r.global_batch = "16sp"
r.max_duration = "330ba"

r.model = t.model.mpt {
  layers = 1, positions = "rope", qk_gn = true, norm = "rmsnorm", tied = false,
  activation = t.act.define(function(x) return t.max(x, 0) * x end),   -- relu squared
}
r.optimizer = t.optim.muon { lr = 0.02, momentum = 0.9, ns_steps = 3, adamw_lr = 0.015 }
r.scheduler = t.sched.wsd { t_warmup = "10ba", t_decay = "0.5dur" }

return r
