-- MPT-7B, as LLM Foundry's mpt-7b.yaml trains it.
local r = require "mpt-125m":extend "mpt-7b"

r.model.width, r.model.heads, r.model.layers = 4096, 32, 32

r.global_batch = "1024sp"
r.micro_batch  = "8sp"
r.max_duration = "63900ba"                                  -- 134B tokens
r.optimizer.lr = 1.2e-4
r.ckpt.every   = "5000ba"
r.eval.every   = "5000ba"
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                    -- all ranks share the model (FSDP)

return r
