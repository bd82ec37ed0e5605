-- Which learning rate, at which width? 40 trials of MPT, most of them stopped early.
--   tycho sweep recipes/sweeps/lr.lua                 successive halving
--   tycho sweep recipes/sweeps/lr.lua method=random   all 40 to their end
local t = require "tycho"
local s = t.sweep "mpt-lr"

s.recipe = "recipes/mpt-125m.lua"
s.metric = { name = "eval.loss", goal = "min" }
s.seeds  = { 17, 18 }                                    -- the two finalists are run with each

s.pins["eval.every"] = "100ba"

s.space["optimizer.lr"]           = t.space.log(1e-4, 6e-3)
s.space["optimizer.weight_decay"] = t.space.choice { 0, 0.01, 0.1 }
s.space["scheduler.t_warmup"]     = t.space.choice { "50ba", "100ba", "400ba" }
s.space.size = t.space.zip { ["model.width"] = { 512, 768 }, ["model.heads"] = { 8, 12 } }
s:skip(function(p) return p["model.width"] == 768 and p["optimizer.lr"] > 4e-3 end)

local methods = {
  grid   = t.search.grid { ["optimizer.lr"] = 6 },       -- 6 values, evenly by their logarithm
  random = t.search.random { trials = 40, seed = 3 },
  asha   = t.search.asha { trials = 40, seed = 3, eta = 3, rungs = { "300ba", "900ba", "2700ba" } },
}
s.search = methods[t.arg("method", "asha")]

s.stop.diverged = function(m) return m.train.loss ~= m.train.loss or m.train.loss > 12 end
s.stop.flat     = t.stop.patience { metric = "eval.loss", evals = 4, min_delta = 1e-3 }

s.launch = t.slurm.available and t.launch.slurm_array { nodes = 1, gpus = 8, time = "4h", max_running = 6 }
  or t.launch.local_gpus { per_trial = 1 }

s.report.columns = { "optimizer.lr", "model.width", "eval.loss", "rung", "tokens", "state" }
return s
