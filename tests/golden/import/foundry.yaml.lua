-- Imported from foundry.yaml, an LLM Foundry YAML.
local t = require "tycho"
local r = t.recipe "foundry"

-- A run as LLM Foundry would train it.
local data = "/data/tokens"
-- variables.copy: null  (not needed here)  -- empty: the data is local
local length = 128
local seed = 17
-- variables.unused: 3  (not needed here)

r.seq_len = length
r.run_name = "small-" .. seed

-- The network
r.model = t.model.mpt {
  -- init_device: meta  (weights are created on their device)
  width = 64,
  heads = 4,  -- heads of 16
  layers = 2,
  max_seq_len = length,
  vocab_size = 512,
  logit_scale = 1 / math.sqrt(64),
  -- attn_impl: flash  (Tycho chooses its kernels)
  positions = "alibi",
  clip_qkv = 8,
  init = {
    name = "baseline_",
    init_std = 0.02,
  },
}

r.tokenizer = "hf://some/tokenizer"

r.train_data = t.data.mds {
  local_dir = data,
  -- remote: ${variables.copy}  (the data is in local)
  split = "train",
  shuffle = true,
  -- max_seq_len: ${variables.length}  (taken from r.seq_len)
  shuffle_seed = seed,
  -- drop_last: true  (batches are always full)
  -- num_workers: 8  (Tycho has its own loader)
  shuffle_algo = "py1e",
  compat = "streaming",
  truncate = true,
}

r.eval_data.val = t.data.mds {
  split = "val",
  shuffle = false,
  local_dir = data,
  -- remote: ${variables.copy}  (the data is in local)
  -- max_seq_len: ${variables.length}  (taken from r.seq_len)
  shuffle_seed = seed,
  -- drop_last: true  (evaluations take every sample)
  -- num_workers: 8  (Tycho has its own loader)
  truncate = true,
}

r.optimizer = t.optim.decoupled_adamw {
  lr = 6.0e-4,
  betas = { 0.9, 0.95 },
  weight_decay = 1.0e-5,
  decay_mask = "all",
}

r.scheduler = t.sched.cosine {
  t_warmup = "10ba",
  alpha_f = 0.1,
  compat = "composer",
}

r.clip.norm = 1.0

r.max_duration = "2ep"  -- twice through
r.eval.every = "1ep"
-- eval_subset_num_batches: -1  (all of it)
r.global_batch = "32sp"
r.micro_batch = "8sp"
r.precision = "bf16"
r.seed = seed

r.recompute.mode = "full"
r.parallel.dp_shard = -1  -- FULL_SHARD

r.run_dir = "./{run_name}"
r.ckpt.every = "0.5dur"
r.ckpt.keep = 0
-- callbacks.speed_monitor: {window_size: 10}  (metrics are always written to the run folder)
-- The end.

return r
