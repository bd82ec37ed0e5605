-- Learning rate and warm-up of the demo: six short trials on this machine.
local t = require "tycho"
local s = t.sweep "demo-lr"

s.recipe = "recipes/demo.lua"
s.metric.name = "loss"
s.pins["max_duration"] = t.arg("length", "60ba")
s.space["optimizer.lr"]       = t.space.log(3e-4, 1e-2)
s.space["scheduler.t_warmup"] = t.space.choice { "0.02dur", "0.2dur" }
s.search = t.search.random { trials = 6 }
s.stop.diverged = function(m) return m.train.loss > 20 end
return s
