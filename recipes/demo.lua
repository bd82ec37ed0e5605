-- The demo: a small Llama that learns to write C++ from the header files of LibTorch, in minutes on two cores.
local t = require "tycho"
local r = t.recipe "demo"

local data = t.env("TYCHO_DEMO_DATA", "runs/demo-data")   -- scripts/demo makes it: a tokenizer and tokens

r.seq_len      = 256
r.global_batch = "16sp"                                   -- sequences per optimizer step
r.max_duration = "300ba"

r.model = t.model.llama {
  width = 256, layers = 4, heads = 4, kv_heads = 2, ffn_width = 768,
  vocab_size = 4096, tied = true,
}
r.optimizer = t.optim.adamw { lr = 2e-3, betas = { 0.9, 0.95 }, weight_decay = 0.1 }
r.scheduler = t.sched.cosine { t_warmup = "0.07dur", alpha_f = 0.1 }
r.clip.norm = 1.0

r.tokenizer  = data .. "/tokenizer.json"
r.train_data = t.data.mds { local_dir = data, recut = true }   -- any seq_len
r.ckpt.every = "0.25dur"
r.log.plot   = true

return r
