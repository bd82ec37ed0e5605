-- MPT-350M, as LLM Foundry's mpt-350m.yaml trains it.
local r = require "mpt-125m":extend "mpt-350m"

r.model.width, r.model.heads, r.model.layers = 1024, 16, 24

r.global_batch = "256sp"
r.micro_batch  = "8sp"
r.max_duration = "13400ba"                                  -- 7B tokens
r.optimizer.lr = 3.0e-4
r.ckpt.every   = "1000ba"
r.eval.every   = "1000ba"

return r
