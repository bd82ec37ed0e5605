-- Weight and memory of the slow mean of AdEMAMix on the demo: keys that the recipe's own optimizer has.
local t = require "tycho"
local s = t.sweep "ademamix"

s.recipe = "recipes/demo-ademamix.lua"
s.metric.name = "loss"
s.pins["max_duration"] = t.arg("length", "60ba")
s.space["optimizer.alpha"]        = t.space.choice { 0, 2, 4, 8 }
s.space["optimizer.alpha_warmup"] = t.space.choice { 0, 60 }
return s
