-- Granite 3 from scratch, with the training settings of llama-8b: preset=3.3-2b, or 3.3-8b, 3.0-2b, 3.0-8b.
local t = require "tycho"
local preset = t.arg("preset", "3.3-2b")
local r = require "llama-8b":extend("granite-" .. preset)

r.model   = t.model.granite { preset = preset }
r.seq_len = 4096

return r
