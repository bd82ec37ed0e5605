-- MPT-30B, as LLM Foundry's mpt-30b.yaml trains it.
local r = require "mpt-125m":extend "mpt-30b"

r.model.width, r.model.heads, r.model.layers = 7168, 56, 48

r.global_batch = "2048sp"
r.micro_batch  = "8sp"
r.max_duration = "143100ba"                                  -- 600B tokens
r.optimizer.lr = 1.0e-4
r.ckpt.every   = "10000ba"
r.eval.every   = "10000ba"
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                    -- all ranks share the model (FSDP)

return r
