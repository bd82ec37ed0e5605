-- Phi-3 and Phi-4 from scratch, with the training settings of llama-8b: preset=phi-3-mini-4k, or phi-3-mini-128k, phi-4, phi-4-mini.
local t = require "tycho"
local preset = t.arg("preset", "phi-3-mini-4k")
local r = require "llama-8b":extend(preset)

r.model   = t.model.phi3 { preset = preset }
r.seq_len = 4096

return r
