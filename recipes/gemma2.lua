-- Gemma 2 from scratch, with the training settings of llama-8b: preset=2b, or 9b, 27b.
local t = require "tycho"
local preset = t.arg("preset", "2b")
local r = require "llama-8b":extend("gemma2-" .. preset)

r.model   = t.model.gemma2 { preset = preset }
r.seq_len = 4096

return r
