-- Imported from titan.toml, a TorchTitan TOML.
local t = require "tycho"
local r = t.recipe "titan"

-- A run as TorchTitan would train it.
r.run_dir = "./outputs/{run_name}"

r.model = t.model.llama {
  -- small
  width = 256, layers = 6, heads = 16, kv_heads = 16,
  ffn_width = 768, vocab_size = 2048,
  rope_scaling = { type = "llama3", factor = 8, low_freq_factor = 1, high_freq_factor = 4, original_max_seq_len = 8192 },
  init = "torchtitan",
}
r.tokenizer = "./assets/tokenizer.json"

r.optimizer = t.optim.adamw {
  -- name: AdamW  (as it is here)
  lr = 0.0003,
  betas = { 0.9, 0.95 },
  decay_mask = "all",
  weight_decay = 0.1,
}

r.scheduler = t.sched.wsd {
  t_warmup = "20ba",
  t_decay = "80ba",
}

r.micro_batch = "4sp"
r.global_batch = "32sp"
r.seq_len = 256
r.max_duration = "100ba"
-- training.dataset: c4  (see train_data at the end)

r.parallel.tp = 1

-- checkpoint.enable: true  (as it is here)
r.ckpt.every = "50ba"

r.recompute.mode = "selective"
-- activation_checkpoint.selective_ac_option: op  (see recompute)

-- TorchTitan's defaults for what the file does not set:
r.precision = "bf16"
r.parallel.dp_shard = -1
r.train_data = t.data.mds { local_dir = t.env("TYCHO_DATA", "data/c4") }  -- made by: tycho data convert

return r
