-- Qwen3 from scratch, with the training settings of llama-8b: preset=0.6b, or 1.7b, 4b, 8b, 14b, 32b.
local t = require "tycho"
local preset = t.arg("preset", "0.6b")
local r = require "llama-8b":extend("qwen3-" .. preset)

r.model   = t.model.qwen3 { preset = preset }
r.seq_len = 4096

return r
