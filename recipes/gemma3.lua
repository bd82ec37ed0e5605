-- Gemma 3 (text) from scratch, with the training settings of llama-8b: preset=270m, or 1b, 4b, 12b, 27b.
local t = require "tycho"
local preset = t.arg("preset", "270m")
local r = require "llama-8b":extend("gemma3-" .. preset)

r.model   = t.model.gemma3 { preset = preset }
r.seq_len = 4096

return r
