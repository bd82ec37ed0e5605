-- OLMo 3 from scratch, with the training settings of llama-8b: preset=7b, or 32b.
local t = require "tycho"
local preset = t.arg("preset", "7b")
local r = require "llama-8b":extend("olmo3-" .. preset)

r.model   = t.model.olmo3 { preset = preset }
r.seq_len = 4096

return r
