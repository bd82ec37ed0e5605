-- Imported from nanotron.yaml, a Nanotron YAML.
local t = require "tycho"
local r = t.recipe "nanotron"

-- A run as Nanotron would train it.
r.log.sinks = {
  t.log.jsonl {},
  t.log.wandb { project = "words", names = "nanotron" },
}
-- general.run: small_%date  (the recipe's name)
r.seed = 42
-- parallelism.dp: 2  (see global_batch at the end)
r.parallel.tp = 4
r.parallel.pp = 1
r.precision = "bf16"
r.model = t.model.llama {
  width = 64,
  ffn_width = 128,
  layers = 2,
  heads = 4,
  vocab_size = 512,
  tied = true,
  norm_eps = 1e-6,
  rope_theta = 10000,
  init_std = 0.025,
}
r.seq_len = 128
r.max_duration = "1500ba"
r.micro_batch = "4sp"
-- tokens.batch_accumulation_per_replica: 2  (see global_batch at the end)
-- optimizer.optimizer_factory.name: adamW  (as it is here)
r.parallel.dp_shard = -1
r.parallel.reshard_after_forward = false
r.parallel.keep_gradients = true
-- optimizer.weight_decay: 0.01  (see optimizer at the end)
r.clip.norm = 1.0
r.scheduler = t.sched.wsd {
  -- a tenth
  t_warmup = "150ba", t_decay = "1350ba", t_max = "1500ba",
  decay_type = "cosine", alpha_f = 0.01,
  compat = "nanotron",
}
-- data_stages: [{name: all of it, start_training_step: 1, data: {seed: 42}}...  (see train_data at the end)
r.run_dir = "ckpts/{run_name}"
r.ckpt.every = "500ba"

r.global_batch = "16sp"  -- micro_batch_size x batch_accumulation_per_replica x dp
r.optimizer = t.optim.adamw { lr = 0.001, betas = { 0.9, 0.95 }, eps = 1e-08, weight_decay = 0.01, decay_mask = "all" }
r.train_data = t.data.mds { local_dir = t.env("TYCHO_DATA", "data") }  -- made by: tycho data convert

return r
