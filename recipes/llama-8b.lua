-- Llama 3 8B from scratch, with TorchTitan's numbers for it. 1B and 70B extend this recipe.
local t = require "tycho"
local r = t.recipe "llama-8b"

r.seq_len      = 8192
r.global_batch = "128sp"
r.micro_batch  = "1sp"
r.max_duration = "1000ba"
r.precision    = "bf16"

r.model = t.model.llama {
  width = 4096, layers = 32, heads = 32, kv_heads = 8, ffn_width = 14336,
  vocab_size = 128256, max_seq_len = 8192, rope_theta = 500000,
}
r.recompute.mode = "auto"                                  -- none where it fits: on eight H100 it does
r.parallel.dp_shard = -1                                   -- all ranks share the model (FSDP)

r.optimizer = t.optim.adamw { lr = 3e-4, betas = { 0.9, 0.95 }, weight_decay = 0.1 }
r.scheduler = t.sched.linear { t_warmup = "200ba" }
r.clip.norm = 1.0

local data   = t.env("TYCHO_DATA", "data/c4")              -- made by: tycho data convert
r.train_data = t.data.mds { local_dir = data }
r.ckpt       = { every = "500ba", keep = 2 }

return r
