-- GPT-2 124M. The larger ones extend this recipe.
local t = require "tycho"
local r = t.recipe "gpt2-124m"

r.seq_len      = 1024
r.global_batch = "480sp"                                   -- half a million tokens
r.micro_batch  = "auto"                                    -- as many as fit; the fastest
r.max_duration = "20000ba"                                 -- 10B tokens
r.precision    = "bf16"

r.model = t.model.gpt2 { width = 768, heads = 12, layers = 12, max_seq_len = 1024, vocab_size = 50257 }

r.optimizer = t.optim.adamw { lr = 6e-4, betas = { 0.9, 0.95 }, weight_decay = 0.1 }
r.scheduler = t.sched.cosine { t_warmup = "700ba", alpha_f = 0.1 }
r.clip.norm = 1.0

local data   = t.env("TYCHO_DATA", "data/openwebtext")     -- made by: tycho data convert
r.train_data = t.data.mds { local_dir = data }
r.ckpt       = { every = "1000ba", keep = 2 }

return r
