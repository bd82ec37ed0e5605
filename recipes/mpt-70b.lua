-- MPT-70B, as LLM Foundry's mpt-70b.yaml trains it.
local r = require "mpt-125m":extend "mpt-70b"

r.model.width, r.model.heads, r.model.layers = 8192, 64, 80

r.global_batch = "2048sp"
r.micro_batch  = "4sp"
r.max_duration = "333800ba"                                  -- 1.4T tokens
r.optimizer.lr = 8.0e-5
r.ckpt.every   = "10000ba"
r.eval.every   = "10000ba"
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                    -- all ranks share the model (FSDP)

return r
