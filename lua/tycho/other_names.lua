-- What keys are called elsewhere: in LLM Foundry, TorchTitan, Nanotron, Hugging Face and older drafts of Tycho. Recipes do
-- not take these names; their problem says what to write.
local native = require "tycho.native"
local schema = require "tycho.schema"

local M = {}

-- Tycho's path -> the paths of others.
local kCalled = {
  ["seq_len"] = "max_seq_len sequence_length context_length block_size",
  ["global_batch"] = "global_train_batch_size train_batch_size batch_size global_batch_size",
  ["micro_batch"] = "device_train_microbatch_size device_train_batch_size micro_batch_size",
  ["max_duration"] = "max_steps num_steps train_steps epochs num_epochs",
  ["precision"] = "dtype",
  ["optimizer"] = "optim",
  ["scheduler"] = "lr_scheduler sched",
  ["train_data"] = "train_loader train_dataset dataset data",
  ["eval_data"] = "eval_loader eval_loaders eval_dataset",
  ["eval.every"] = "eval_interval eval_every eval.interval",
  ["eval.first"] = "eval_first",
  ["eval.batches"] = "eval_subset_num_batches",
  ["ckpt.every"] = "save_interval ckpt.interval",
  ["ckpt.keep"] = "save_num_checkpoints_to_keep",
  ["run_dir"] = "save_folder output_dir ckpt.dir ckpt.folder",
  ["resume"] = "load_path autoresume",
  ["clip.norm"] = "grad_clip gradient_clipping max_grad_norm clip_norm max_norm",
  ["log.every"] = "log_interval log_every log.interval",
  ["optimizer.lr"] = "learning_rate optimizer.learning_rate",
  ["scheduler.t_warmup"] = "warmup warmup_steps scheduler.warmup scheduler.warmup_steps",
  ["scheduler.alpha_f"] = "scheduler.floor scheduler.min_lr scheduler.min_lr_ratio scheduler.alpha_min",
  ["model.width"] = "model.d_model model.hidden_size model.n_embd model.dim model.embed_dim",
  ["model.layers"] = "model.n_layers model.n_layer model.num_layers model.num_hidden_layers",
  ["model.heads"] = "model.n_heads model.n_head model.num_heads model.num_attention_heads",
  ["model.kv_heads"] = "model.kv_n_heads model.n_kv_heads model.num_key_value_heads",
  ["model.head_width"] = "model.head_dim",
  ["model.ffn_width"] = "model.intermediate_size model.ffn_hidden_size model.ffn_dim",
  ["model.expansion_ratio"] = "model.expansion",
  ["model.rope_theta"] = "model.theta",
  ["model.sliding_window"] = "model.sliding_window_size",
  ["model.temperature_tuning"] = "model.attn_temperature_tuning",
  ["model.blocks"] = "model.block_overrides",
  ["model.tied"] = "model.tie_word_embeddings model.tie_embeddings",
}

local kNoBackend = "leave it out: the kernel of attention follows from device and shapes"
local kInAKind = "write it in a kind of  model.blocks"
local kRanks = "leave it out: ranks share each batch, and  tycho launch -n 8 run RECIPE  or  srun  starts them"
local kLoggers = "leave it out: every run writes metrics.jsonl, and log.every says how often"

-- What has no key of its own here.
local kAdvice = {
  ["model.attn"] = kNoBackend, ["model.attn_impl"] = kNoBackend,
  ["model.seq_len"] = "leave it out: models take the recipe's seq_len, and max_seq_len is the longest that they are meant for",
  ["model.rope"] = "write  rope_theta  and  rope_scaling = { ... }",
  ["model.nope"] = kInAKind, ["model.reuse_kv"] = kInAKind, ["model.reuse_kv_x"] = kInAKind,
  ["parallel"] = kRanks, ["fsdp"] = kRanks, ["fsdp_config"] = kRanks, ["t.parallel"] = kRanks,
  ["loggers"] = kLoggers, ["logger"] = kLoggers, ["t.log"] = kLoggers,
  ["ckpt.hf_export"] = "leave it out:  tycho convert  makes a folder of Hugging Face of any checkpoint",
  ["t.ckpt"] = 'write a table: r.ckpt = { every = "500ba", keep = 2 }',
  ["t.clip"] = "write  r.clip.norm = 1.0",
  ["t.rope"] = "write  rope_theta  and  rope_scaling = { ... }  in the model",
  ["t.data.stream"] = "write  t.data.mds { local_dir = ... }", ["t.data.streaming"] = "write  t.data.mds { local_dir = ... }",
  ["t.data.finetuning"] = "write  t.data.chat { path = ... }",
  ["t.sched.cosine_with_warmup"] = "write  t.sched.cosine { t_warmup = ... }",
  ["t.sched.linear_decay_with_warmup"] = "write  t.sched.linear { t_warmup = ... }",
}

-- Path -> value -> what to write instead of it.
local kValues = { micro_batch = { auto = "leave it out: without it a pass is near 16384 tokens" } }

local path_of = {}   -- the path of another -> Tycho's
for path, others in pairs(kCalled) do
  for other in others:gmatch "%S+" do path_of[other] = path end
end

-- What to write instead of an unknown key of recipes, or that there is no such thing ("mixtures of experts are not supported"
-- for moe_num_experts); nil when the name says nothing. `key`: the last part of the path.
function M.key_hint(root, path, key, keys)
  return type(key) == "string" and native.absent(key) or M.hint(root, path, keys)
end

-- What to write instead of such a key, or of "t.NAME". `keys` are those that stand beside it, when its component is known.
function M.hint(root, path, keys)
  if kAdvice[path] then return kAdvice[path] end
  local ours = path_of[path]
  local field = ours and schema.index(root)[ours]
  if not field then return nil end
  local parent, name = ours:match "^(.*)%.([^.]*)$"
  if not keys or path:match "^(.*)%." ~= parent then return ("write  %s  (%s)"):format(ours, schema.describe_shortly(field)) end
  for _, key in ipairs(keys) do
    if key == name then return "write  " .. name end
  end
end

-- What to write instead of a value that does not fit, or nil.
function M.value_hint(path, value)
  return kValues[path] and kValues[path][value]
end

return M
