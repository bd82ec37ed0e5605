-- The recipe "tiny" as resolved: every key is set. It can be run again.
local t = require "tycho"
local r = t.recipe "tiny"

r.run_name = "tiny"
r.run_dir = "runs/{run_name}"
r.resume = "auto"
r.seed = 17
r.device = "auto"
r.threads = 1
r.parallel = {
  mesh = "given",
  pp = 1,
  dp_replicate = -1,
  dp_shard = 1,
  cp = 1,
  cp_attention = "gather",
  tp = 1,
  reshard_after_forward = true,
  keep_gradients = false,
  reduce_dtype = "fp32",
  reduce = "ranks",
  register_buffers = false,
  sequence_parallel = true,
  pp_schedule = "1f1b",
  pp_chunks = 1,
  pp_layers = {  },
}
r.machine = {
  name = "",
  gpu = t.null,
  memory = t.null,
  peak_tflops = t.null,
  gpus_per_node = t.null,
  nvlink_gpus = t.null,
  nvlink_gb_s = t.null,
  network_gb_s = t.null,
  network_us = t.null,
  efficiency = t.null,
}
r.precision = "fp32"
r.master_weights = "fp32"
r.seq_len = 32
r.global_batch = "4sp"
r.micro_batch = t.null
r.max_duration = "8ba"
r.model = t.model.llama {
  width = 16,
  layers = 1,
  heads = 2,
  kv_heads = t.null,
  head_width = t.null,
  ffn_width = 32,
  vocab_size = 384,
  max_seq_len = t.null,
  rope_theta = 500000,
  rope_scaling = {
    type = "none",
    factor = 8,
    low_freq_factor = 1,
    high_freq_factor = 4,
    original_max_seq_len = 8192,
    beta_fast = 32,
    beta_slow = 1,
    truncate = true,
    mscale = t.null,
    mscale_all_dim = t.null,
    attention_factor = t.null,
    short_factor = {  },
    long_factor = {  },
  },
  norm_eps = 1e-05,
  tied = true,
  attention_bias = false,
  ffn_bias = false,
  attn_dropout = 0,
  init = "normal",
  init_std = 0.02,
  weights = "",
}
r.lora = {
  rank = 0,
  alpha = t.null,
  dropout = 0,
  rslora = false,
  targets = {  },
}
r.recompute = {
  mode = "none",
  every = 1,
}
r.loss = t.loss.cross_entropy {
}
r.optimizer = t.optim.adamw {
  lr = 0.0006,
  betas = { 0.9, 0.95 },
  eps = 1e-08,
  weight_decay = 0,
  decay_mask = "matrices",
}
r.param_groups = {  }
r.scheduler = t.sched.cosine {
  t_warmup = "2ba",
  t_max = "1dur",
  alpha_f = 0,
  scale_schedule_ratio = 1,
  scale_warmup = false,
  compat = "none",
}
r.clip = {
  norm = 1,
  value = t.null,
  adaptive = t.null,
}
r.guard = {
  action = "stop",
  max_grad_norm = t.null,
  max_skips = 10,
}
r.ema = {
  half_life = t.null,
  decay = t.null,
  start = "0ba",
  every = "1ba",
  evaluate = true,
}
r.tokenizer = "data/tokenizer.json"
r.train_data = t.data.mds {
  local_dir = "data",
  remote = "",
  split = "train",
  shuffle = true,
  shuffle_seed = t.null,
  eos_token_id = t.null,
  bos_token_id = t.null,
  pad_token_id = t.null,
  weights = "",
  epoch_size = t.null,
  streams = {  },
  batching_method = "random",
  sampling_method = "balanced",
  sampling_granularity = 1,
  shuffle_algo = "naive",
  shuffle_block_size = t.null,
  num_canonical_nodes = t.null,
  compat = "none",
  recut = false,
  truncate = false,
  prefetch = 4,
  verify = "once",
  cache_limit = t.null,
  keep_zip = false,
  decompress_dir = "",
  decompress_memory = "192MiB",
  predownload = t.null,
  download_retry = 6,
  download_timeout_s = 60,
  remote_sas_env = "",
}
r.data_stages = {  }
r.eval_data = {
  ["val"] = t.data.mds {
    local_dir = "data",
    remote = "",
    split = "train",
    shuffle = true,
    shuffle_seed = t.null,
    eos_token_id = t.null,
    bos_token_id = t.null,
    pad_token_id = t.null,
    weights = "",
    epoch_size = t.null,
    streams = {  },
    batching_method = "random",
    sampling_method = "balanced",
    sampling_granularity = 1,
    shuffle_algo = "naive",
    shuffle_block_size = t.null,
    num_canonical_nodes = t.null,
    compat = "none",
    recut = false,
    truncate = false,
    prefetch = 4,
    verify = "once",
    cache_limit = t.null,
    keep_zip = false,
    decompress_dir = "",
    decompress_memory = "192MiB",
    predownload = t.null,
    download_retry = 6,
    download_timeout_s = 60,
    remote_sas_env = "",
  },
}
r.eval = {
  every = "4ba",
  batches = 2,
  first = false,
}
r.icl = {
  every = t.null,
  first = false,
  tasks = {  },
  gauntlet = {
    weighting = "EQUAL",
    subtract_random_baseline = true,
    rescale_accuracy = true,
    categories = {},
    averages = {},
  },
  outputs = false,
}
r.ckpt = {
  every = "4ba",
  keep = 1,
  async = true,
  state = "sharded",
  max_lost = "600s",
}
r.log = {
  every = "1ba",
  plot = false,
  show = {  },
  loss_by_position = t.null,
  sinks = { t.log.jsonl {
  } },
}
r.profile = {
  active = t.null,
  skip_first = "0ba",
  wait = "0ba",
  warmup = "1ba",
  repeat_count = 1,
  ranks = { 0 },
  shapes = false,
  memory = false,
}
r.callbacks = {}
r.lua_memory = "256MiB"
return r
