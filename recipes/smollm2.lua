-- SmolLM2 from scratch, with the training settings of llama-8b: preset=smollm2-135m, or smollm2-360m, smollm2-1.7b.
local t = require "tycho"
local preset = t.arg("preset", "smollm2-135m")
local r = require "llama-8b":extend(preset)

r.model   = t.model.llama { preset = preset }
r.seq_len = 4096

return r
