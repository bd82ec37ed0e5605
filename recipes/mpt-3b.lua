-- MPT-3B, as LLM Foundry's mpt-3b.yaml trains it.
local r = require "mpt-125m":extend "mpt-3b"

r.model.width, r.model.heads, r.model.layers = 2560, 20, 32

r.global_batch = "512sp"
r.micro_batch  = "8sp"
r.max_duration = "51500ba"                                  -- 54B tokens
r.optimizer.lr = 1.6e-4
r.ckpt.every   = "5000ba"
r.eval.every   = "5000ba"
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                    -- all ranks share the model (FSDP)

return r
