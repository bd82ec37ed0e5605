-- MPT-125M, as LLM Foundry's mpt-125m.yaml trains it. The larger ones extend this recipe.
local t = require "tycho"
local r = t.recipe "mpt-125m"

r.seq_len      = 2048
r.global_batch = "256sp"
r.micro_batch  = "auto"                                    -- as many as fit; the fastest
r.max_duration = "4800ba"                                  -- 2.5B tokens: 20 for every parameter
r.precision    = "bf16"
r.seed         = 17

r.model = t.model.mpt {
  width = 768, heads = 12, layers = 12,
  max_seq_len = 2048, vocab_size = 50368,
}
r.optimizer = t.optim.decoupled_adamw { lr = 6e-4, betas = { 0.9, 0.95 }, eps = 1e-8, weight_decay = 0 }
r.scheduler = t.sched.cosine { t_warmup = "100ba", alpha_f = 0.1, compat = "composer" }
r.clip.norm = 1.0

local data   = t.env("TYCHO_DATA", "data/c4")              -- made by: tycho data convert
r.train_data = t.data.mds { local_dir = data, split = "train_small" }
r.eval_data.val = t.data.mds { local_dir = data, split = "val_small" }
r.eval       = { every = "500ba" }                         -- all of it
r.ckpt       = { every = "500ba", keep = 1 }

return r
