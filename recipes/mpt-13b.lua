-- MPT-13B, as LLM Foundry's mpt-13b.yaml trains it.
local r = require "mpt-125m":extend "mpt-13b"

r.model.width, r.model.heads, r.model.layers = 5120, 40, 40

r.global_batch = "1024sp"
r.micro_batch  = "8sp"
r.max_duration = "124000ba"                                  -- 260B tokens
r.optimizer.lr = 1.0e-4
r.ckpt.every   = "5000ba"
r.eval.every   = "5000ba"
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                    -- all ranks share the model (FSDP)

return r
