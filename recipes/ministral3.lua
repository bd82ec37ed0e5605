-- Ministral 3 from scratch, with the training settings of llama-8b: preset=3b, or 8b, 14b.
local t = require "tycho"
local preset = t.arg("preset", "3b")
local r = require "llama-8b":extend("ministral3-" .. preset)

r.model   = t.model.ministral3 { preset = preset }
r.seq_len = 4096

return r
