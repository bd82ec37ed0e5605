-- OLMo 2 from scratch, with the training settings of llama-8b: preset=1b, or 7b, 13b, 32b.
local t = require "tycho"
local preset = t.arg("preset", "1b")
local r = require "llama-8b":extend("olmo2-" .. preset)

r.model   = t.model.olmo2 { preset = preset }
r.seq_len = 4096

return r
