-- The run of the training-step benchmark: bench/train_step.py pins the model's size, the batch and the data.
local t = require "tycho"
local r = t.recipe "train-step"

r.seq_len      = 256
r.global_batch = "16sp"
r.max_duration = "60ba"
r.resume       = "none"

local family = t.env("TYCHO_BENCH_FAMILY", "llama")
local weights = t.env("TYCHO_BENCH_WEIGHTS", "")  -- a checkpoint that both sides begin with; "": first values
if family == "llama" then
  r.model = t.model.llama {
    width = 256, layers = 4, heads = 4, kv_heads = 2, ffn_width = 768,
    vocab_size = 4096, tied = true,
  }
elseif family == "qwen3" then
  r.model = t.model.qwen3 { tied = true }
elseif family == "gpt2" then
  r.model = t.model.gpt2 {}
else
  r.model = t.model.mpt { positions = "alibi", no_bias = true }
  if weights == "" then r.model.init = { name = "baseline_", init_std = 0.02 } end
end
if weights ~= "" then r.model.weights = weights end
r.optimizer = t.optim.adamw { lr = 1e-3, betas = { 0.9, 0.95 }, weight_decay = 0.1 }
r.scheduler = t.sched.constant {}
r.clip.norm = 1.0

r.train_data = t.data.mds { local_dir = "data", split = "", shuffle = false }
r.ckpt.every = "1dur"

return r
