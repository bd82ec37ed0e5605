-- MPT-1B, as LLM Foundry's mpt-1b.yaml trains it.
local r = require "mpt-125m":extend "mpt-1b"

r.model.width, r.model.heads, r.model.layers = 2048, 16, 24

r.global_batch = "512sp"
r.micro_batch  = "4sp"
r.max_duration = "24800ba"                                  -- 26B tokens
r.optimizer.lr = 2.0e-4
r.ckpt.every   = "2000ba"
r.eval.every   = "2000ba"

return r
