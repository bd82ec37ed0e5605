-- Qwen2.5 from scratch, with the training settings of llama-8b: preset=0.5b, or 1.5b, 3b, 7b, 14b, 32b, 72b.
local t = require "tycho"
local preset = t.arg("preset", "0.5b")
local r = require "llama-8b":extend("qwen2-" .. preset)

r.model   = t.model.qwen2 { preset = preset }
r.seq_len = 4096

return r
