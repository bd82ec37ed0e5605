-- Mistral from scratch, with the training settings of llama-8b: preset=7b-v0.3, or 7b-v0.1, nemo-12b, small-24b-3.1.
local t = require "tycho"
local preset = t.arg("preset", "7b-v0.3")
local r = require "llama-8b":extend("mistral-" .. preset)

r.model   = t.model.mistral { preset = preset }
r.seq_len = 4096

return r
