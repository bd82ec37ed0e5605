-- MPT-760M, as LLM Foundry's mpt-760m.yaml trains it.
local r = require "mpt-125m":extend "mpt-760m"

r.model.width, r.model.heads, r.model.layers = 1536, 12, 24

r.global_batch = "256sp"
r.micro_batch  = "4sp"
r.max_duration = "29000ba"                                  -- 15B tokens
r.optimizer.lr = 2.5e-4
r.ckpt.every   = "2000ba"
r.eval.every   = "2000ba"

return r
