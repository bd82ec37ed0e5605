-- nanoGPT's published CPU configuration (train_shakespeare_char.py with the README's arguments for one CPU): characters of
-- tiny Shakespeare, 4 blocks of width 128, rows of 64. bench/speedrun.py makes the tokens and times it.
local t = require "tycho"
local r = t.recipe "speedrun-nanogpt"

local data = t.env("TYCHO_SPEEDRUN_DATA", "runs/speedrun-data")

r.seq_len      = 64
r.global_batch = "12sp"
r.max_duration = "2000ba"

r.model = t.model.mpt {
  width = 128, layers = 4, heads = 4, vocab_size = 65, max_seq_len = 64,
  norm = "layernorm", no_bias = true, init = { name = "baseline_", init_std = 0.02 },
}
r.optimizer = t.optim.adamw { lr = 1e-3, betas = { 0.9, 0.99 }, weight_decay = 0.1 }
r.scheduler = t.sched.cosine { t_warmup = "100ba", alpha_f = 0.1 }
r.clip.norm = 1.0

r.train_data    = t.data.tokens { path = data .. "/train.bin", format = "raw", dtype = "uint16" }
r.eval_data.val = t.data.tokens { path = data .. "/val.bin", format = "raw", dtype = "uint16" }   -- every window of 64
r.eval.every    = "1dur"
r.ckpt.every    = "1dur"

return r
