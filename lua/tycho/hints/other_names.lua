-- Names of keys elsewhere: in LLM Foundry, TorchTitan, Nanotron, Hugging Face and older drafts of Tycho. Recipes reject
-- these names and say what to write.
local literal = require "tycho.overrides.literal"
local native = require "tycho.native"
local other_spaces = require "tycho.hints.other_spaces"
local other_values = require "tycho.hints.other_values"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"

local M = {}

-- Tycho's path -> the paths of others.
local kCalled = {
  ["seq_len"] = "max_seq_len sequence_length context_length block_size max_length max_seq_length training.seq_len",
  ["global_batch"] = "global_train_batch_size train_batch_size batch_size global_batch_size training.global_batch_size",
  ["micro_batch"] = "device_train_microbatch_size device_train_batch_size micro_batch_size per_device_train_batch_size "
    .. "local_batch_size training.local_batch_size",
  ["max_duration"] = "steps iterations max_steps num_steps train_steps total_steps max_iters training.steps trainer.max_steps "
    .. "epochs num_epochs max_epochs num_train_epochs trainer.max_epochs",
  ["precision"] = "dtype torch_dtype training.mixed_precision_param model.dtype",
  ["optimizer"] = "optim",
  ["scheduler"] = "lr_scheduler sched lr_scheduler_type",
  ["train_data"] = "train_loader train_dataset dataset data dataset_name train_file training.dataset dataloader",
  ["eval_data"] = "eval_loader eval_loaders eval_dataset",
  ["eval.every"] = "eval_interval eval_every eval.interval eval_steps validation.freq",
  ["eval.first"] = "eval_first",
  ["eval.batches"] = "eval_subset_num_batches eval_iters validation.steps",
  ["ckpt.every"] = "save_interval ckpt.interval save_steps checkpoint.interval checkpoint_interval",
  ["ckpt.keep"] = "save_num_checkpoints_to_keep save_total_limit checkpoint.keep_latest_k",
  ["run_dir"] = "save_folder output_dir out_dir ckpt.dir ckpt.folder checkpoint.folder hydra.run.dir job.dump_folder",
  ["run_name"] = "name experiment_name exp_name",
  ["resume"] = "load_path autoresume resume_from_checkpoint resume_from ckpt_path",
  ["clip.norm"] = "grad_clip gradient_clipping max_grad_norm clip_norm max_norm gradient_clip_val training.max_norm "
    .. "algorithms.gradient_clipping.clipping_threshold",
  ["ema.half_life"] = "algorithms.ema.half_life",
  ["ema.decay"] = "ema.smoothing ema.beta ema_decay ema.ema_decay algorithms.ema.smoothing",
  ["ema.start"] = "ema.ema_start algorithms.ema.ema_start",
  ["ema.every"] = "ema.update_interval algorithms.ema.update_interval",
  ["log.every"] = "log_interval log_every log.interval logging_steps metrics.log_freq console_log_interval",
  ["log.loss_by_position"] = "loss_perp_v_len callbacks.loss_perp_v_len loss_v_len",
  ["optimizer.lr"] = "learning_rate optimizer.learning_rate max_lr",
  ["optimizer.eps"] = "adam_epsilon",
  ["optimizer.betas.1"] = "beta1 adam_beta1 optimizer.beta1",
  ["optimizer.betas.2"] = "beta2 adam_beta2 optimizer.beta2",
  ["scheduler.t_warmup"] = "warmup warmup_steps warmup_iters scheduler.warmup scheduler.warmup_steps lr_scheduler.warmup_steps",
  ["scheduler.alpha_f"] = "scheduler.floor scheduler.min_lr scheduler.min_lr_ratio scheduler.alpha_min lr_scheduler.min_lr_factor",
  ["model.width"] = "model.d_model model.hidden_size model.n_embd model.dim model.embed_dim d_model hidden_size n_embd",
  ["model.layers"] = "model.n_layers model.n_layer model.num_layers model.num_hidden_layers n_layers n_layer num_layers num_hidden_layers",
  ["model.heads"] = "model.n_heads model.n_head model.num_heads model.num_attention_heads n_heads n_head num_heads num_attention_heads",
  ["model.kv_heads"] = "model.kv_n_heads model.n_kv_heads model.num_key_value_heads",
  ["model.head_width"] = "model.head_dim",
  ["model.ffn_width"] = "model.intermediate_size model.ffn_hidden_size model.ffn_dim intermediate_size",
  ["model.expansion_ratio"] = "model.expansion",
  ["model.rope_theta"] = "model.theta",
  ["model.sliding_window"] = "model.sliding_window_size",
  ["model.temperature_tuning"] = "model.attn_temperature_tuning",
  ["model.blocks"] = "model.block_overrides",
  ["model.tied"] = "model.tie_word_embeddings model.tie_embeddings",
  ["model.weights"] = "model_name_or_path pretrained_model_name_or_path init_from model.pretrained load_weights",
  ["recompute.mode"] = "activation_checkpoint.mode",
}

-- What counts epochs: a bare number is so many of them.
local kEpochs = {}
for name in ("epochs num_epochs max_epochs num_train_epochs trainer.max_epochs"):gmatch "%S+" do kEpochs[name] = true end

local kNoBackend = "leave it out: device and shapes determine the attention kernel"
local kInAKind = "write it in a kind of  model.blocks"
local kRanks = "leave it out: ranks share each batch, and  tycho launch -n 8 run RECIPE  or  srun  starts them"
local kShares = "write  parallel.dp_shard=8  for ranks that share the model, -1 for all of them"
local kLoggers = "every run writes metrics.jsonl; for others write  r.log.sinks = { t.log.jsonl {}, t.log.tensorboard {} }"
local kWandb = "write  r.log.sinks = { t.log.jsonl {}, t.log.wandb { project = \"...\" } }"
local kTensorboard = "write  r.log.sinks = { t.log.jsonl {}, t.log.tensorboard {} }"
local kMlflow = "write  r.log.sinks = { t.log.jsonl {}, t.log.mlflow { experiment = \"...\" } }"
local kCompiled = "leave it out: Tycho's kernels are already compiled"
local kLoader = "leave it out: batches are prepared ahead automatically"
local kRecompute = "write  recompute.mode=selective  (or full)"
local kBf16 = "write  precision=bf16"
local kHydra = "there is no hydra here: run_name and run_dir choose the run folder, and  tycho sweep  starts many runs"
local kSlurm = "Slurm's options are sbatch's and srun's; in a sweep they are  launch = t.launch.slurm_array { options = { ... } }"

-- Keys without an equivalent here, by the key or its first parts.
local kAdvice = {
  ["model.attn"] = kNoBackend, ["model.attn_impl"] = kNoBackend, ["attn_implementation"] = kNoBackend,
  ["flash_attention"] = kNoBackend, ["use_flash_attention"] = kNoBackend, ["model.attn_config.attn_impl"] = kNoBackend,
  ["model.seq_len"] = "leave it out: models use the recipe's seq_len; max_seq_len is the longest sequence that they are meant for",
  ["model.rope"] = "write  rope_theta  and  rope_scaling = { ... }",
  ["model.preset"] = 'a preset is chosen where the model is made:  t.model.qwen3 { preset = "1.7b" };  '
    .. 'with  preset = t.arg("preset", "0.6b")  there, the command line chooses it',
  ["model.nope"] = kInAKind, ["model.reuse_kv"] = kInAKind, ["model.reuse_kv_x"] = kInAKind,
  ["parallelism"] = kShares, ["fsdp"] = kShares, ["fsdp_config"] = kShares, ["t.parallel"] = kShares,
  ["deepspeed"] = kShares, ["gpus"] = kRanks, ["num_gpus"] = kRanks, ["n_gpus"] = kRanks, ["devices"] = kRanks,
  ["nodes"] = kRanks, ["num_nodes"] = kRanks, ["nnodes"] = kRanks, ["nproc_per_node"] = kRanks, ["world_size"] = kRanks,
  ["strategy"] = kRanks, ["accelerator"] = "write  device=auto", ["use_cuda"] = "write  device=cuda", ["no_cuda"] = "write  device=cpu",
  ["loggers"] = kLoggers, ["logger"] = kLoggers, ["wandb"] = kWandb, ["report_to"] = kLoggers,
  ["tensorboard"] = kTensorboard, ["mlflow"] = kMlflow, ["wandb_log"] = kWandb, ["wandb_project"] = kWandb,
  ["loggers.wandb"] = kWandb, ["loggers.tensorboard"] = kTensorboard, ["loggers.mlflow"] = kMlflow,
  ["compile"] = kCompiled, ["torch_compile"] = kCompiled, ["training.compile"] = kCompiled, ["compile_config"] = kCompiled,
  ["num_workers"] = kLoader, ["dataloader_num_workers"] = kLoader, ["dataloader.num_workers"] = kLoader, ["pin_memory"] = kLoader,
  ["prefetch_factor"] = kLoader, ["train_data.num_workers"] = kLoader, ["train_data.prefetch_factor"] = kLoader,
  ["train_data.persistent_workers"] = kLoader, ["train_data.pin_memory"] = kLoader,
  ["gradient_checkpointing"] = kRecompute, ["activation_checkpointing"] = kRecompute, ["activation_checkpoint"] = kRecompute,
  ["gradient_accumulation_steps"] = "write  global_batch=64sp  (sequences of a step, all ranks together) and  micro_batch=8sp  "
    .. "(of a pass): the rest is accumulated",
  ["bf16"] = kBf16, ["fp16"] = "there is no fp16; " .. kBf16, ["amp"] = kBf16, ["mixed_precision"] = kBf16, ["autocast"] = kBf16,
  ["dropout"] = "write  model.attn_dropout=0.1;  mpt and gpt2 also have  resid_dropout  and  gpt2  embedding_dropout",
  ["tf32"] = "leave it out: products of fp32 weights stay fp32",
  ["min_lr"] = "write  scheduler.alpha_f=0.1  (a share of optimizer.lr)",
  ["warmup_ratio"] = "write  scheduler.t_warmup=0.03dur  (a share of the run)",
  ["lr_decay_iters"] = "leave it out: schedules end with the run (max_duration)",
  ["hydra"] = kHydra, ["defaults"] = "write  require \"base\" :extend \"name\"  in the recipe, or give an override file:  @base.txt",
  ["slurm"] = kSlurm, ["sbatch"] = kSlurm, ["launch"] = kSlurm,
  ["ckpt.hf_export"] = "leave it out:  tycho convert  exports any checkpoint as a Hugging Face folder",
  ["t.ckpt"] = 'write a table: r.ckpt = { every = "500ba", keep = 2 }',
  ["t.clip"] = "write  r.clip.norm = 1.0",
  ["t.rope"] = "write  rope_theta  and  rope_scaling = { ... }  in the model",
  ["t.cb.loss_perp_v_len"] = 'write  r.log.loss_by_position = "100ba"',
  ["t.data.stream"] = "write  t.data.mds { local_dir = ... }", ["t.data.streaming"] = "write  t.data.mds { local_dir = ... }",
  ["t.data.finetuning"] = "write  t.data.chat { path = ... }",
  ["t.sched.cosine_with_warmup"] = "write  t.sched.cosine { t_warmup = ... }",
  ["t.sched.linear_decay_with_warmup"] = "write  t.sched.linear { t_warmup = ... }",
}

local kNo = { ["false"] = true, False = true, ["0"] = true, no = true, off = true, none = true, None = true, null = true }

-- Advice for a flag: what to write where it is off, and where it is on.
local function flag(off, on) return function(value) return kNo[value] and off or on end end

local function resume_from(value)
  if kNo[value] then return "write  resume=none" end
  if value == "true" or value == "True" or value == "latest" or value == "last" or value == "auto" then
    return "leave it out: a run resumes from its newest checkpoint automatically"
  end
  if value:find "%.pth?$" or value:find "%.ckpt$" or value:find "%.bin$" or value:find "%.safetensors$" or value:find "%.distcp$" then
    return "checkpoints of other systems cannot be resumed; weights of a Hugging Face folder are a start:  model.weights=FOLDER"
  end
end

local function ranks(value) return value:find "^[1-9]%d*$" and kRanks:gsub("%-n 8", "-n " .. value) or nil end

-- Advice for a share below 1, with the share that was typed.
local function share_then(text)
  return function(value)
    local share = tonumber(value)
    return share and share >= 0 and share < 1 and text:format(value) or nil
  end
end

-- What depends on the value beside the key.
local kByValue = {
  ["warmup_ratio"] = share_then "write  scheduler.t_warmup=%sdur  (a share of the run)",
  ["min_lr"] = share_then "write  'scheduler.alpha_f:=%s / r.optimizer.lr'  (a share of optimizer.lr)",
  ["dropout"] = share_then "write  model.attn_dropout=%s;  mpt and gpt2 also have  resid_dropout  and  gpt2  embedding_dropout",
  ["bf16"] = flag("write  precision=fp32", kBf16), ["fp16"] = flag("leave it out: there is no fp16"),
  ["amp"] = flag("write  precision=fp32"), ["autocast"] = flag("write  precision=fp32"),
  ["use_cuda"] = flag "write  device=cpu", ["no_cuda"] = flag "write  device=auto",
  ["gradient_checkpointing"] = flag "write  recompute.mode=none", ["activation_checkpointing"] = flag "write  recompute.mode=none",
  ["gpus"] = ranks, ["num_gpus"] = ranks, ["n_gpus"] = ranks, ["devices"] = ranks, ["nproc_per_node"] = ranks, ["world_size"] = ranks,
}
for name in kCalled.resume:gmatch "%S+" do kByValue[name] = resume_from end

-- Slurm's options of a sweep's array that are not keys of their own.
local kSlurmOptions = {}
for name in ("qos constraint mem cpus_per_task exclude nodelist gres reservation exclusive mail_user mail_type job_name output "
  .. "ntasks_per_node gpus_per_node comment licenses nice begin dependency"):gmatch "%S+" do kSlurmOptions[name] = true end

-- Keys that name the class of a component in YAML.
local kNamesAKind = { name = true, type = true, kind = true, _target_ = true, class_path = true, class = true }

-- Path -> value -> what to write instead of it.
local kValues = {
  recompute = { ["true"] = "write  recompute.mode=full", ["false"] = "write  recompute.mode=none" },
  parallel = { fsdp = "write  parallel.dp_shard=-1", zero3 = "write  parallel.dp_shard=-1", ddp = kRanks, dp = kRanks,
    tp = "write  parallel.tp=8", pp = "write  parallel.pp=4", cp = "write  parallel.cp=2" },
  ["ckpt.keep"] = { all = "write  0  to keep all" },
}

local path_of = {}   -- the path of another -> Tycho's
for path, others in pairs(kCalled) do
  for other in others:gmatch "%S+" do path_of[other] = path end
end

-- The field at a path of ours; of a list's value by its number, too.
local function field_at(root, path)
  local index = schema.index(root)
  local list = not index[path] and index[path:match "^(.*)%.%d+$" or ""]
  return list and list.item or index[path]
end

-- What to write instead of an unknown key, or that the feature does not exist ("mixtures of experts are not supported" for
-- moe_num_experts); nil when the name says nothing. `key`: the last part of the path.
function M.key_hint(root, path, key, keys)
  return type(key) == "string" and native.absent(key) or M.hint(root, path, keys)
end

-- precision=bf16 of an argument as a recipe has it: precision = "bf16".
local function in_lua(advice)
  return advice and advice:gsub("([%a_][%w_%.]*)=(%w[%w%.]*)", function(key, value)
    return ("%s = %s"):format(key, (tonumber(value) or value == "true" or value == "false") and value or '"' .. value .. '"')
  end)
end

-- What to write instead of such a key, or of "t.NAME". `keys` are those that stand beside it, when its component is known.
function M.hint(root, path, keys)
  local ours = path_of[path]
  local field = ours and field_at(root, ours)
  local space = path:match "^t%.space%.(.*)$"
  if space then return other_spaces.in_file(space) end
  if not field then return (in_lua(kAdvice[path])) end
  if ours:find "%.%d$" then return "write  betas = { 0.9, 0.95 }" end
  local parent, name = ours:match "^(.*)%.([^.]*)$"
  if not keys or path:match "^(.*)%." ~= parent then return ("write  %s  (%s)"):format(ours, schema.describe_shortly(field)) end
  for _, key in ipairs(keys) do
    local example = kEpochs[path] and ' = "3ep"' or field.type == "duration" and " = " .. schema.example(field) or ""
    if key == (name or ours) then return "write  " .. key .. example end
  end
end

-- `value` as our key takes it: a bare number of a duration gets the unit that the other system counts in. nil when it does not fit.
local function value_for(field, path, value)
  if field.type == "duration" and tonumber(value) then
    value = value .. (kEpochs[path] and "ep" or (field.units or { "ba" })[1])
  end
  return literal.read(field, value) ~= nil and value or nil
end

-- Of an argument: what to write for the key of another system with this value.
local function renamed_argument(root, path, override)
  local ours = path_of[path]
  local field = ours and field_at(root, ours)
  if not field then return nil end
  local by_value = kByValue[path] and override.value and kByValue[path](override.value)
  if by_value then return by_value end
  local value = override.op == "=" and override.value and value_for(field, path, override.value)
  if not value then return ("write  %s  (%s)"):format(ours, schema.describe_shortly(field)) end
  return "write  " .. overrides.shell_word(("%s=%s"):format(ours, value))
end

-- optimizer.name=adamw, optimizer._target_=torch.optim.AdamW: the kind is the value of the key above.
function M.names_a_kind(root, path, value)
  local above, last = path:match "^(.*)%.([^.]*)$"
  local field = kNamesAKind[last] and schema.index(root)[above]
  if not field or field.type ~= "component" then return nil end
  local kind = other_values.kind(value or "", field.kinds) or field.usual
  return ("the kind is the value of the key:  %s=%s"):format(above, kind)
end

local function advice_on(path, value)
  return kByValue[path] and value and kByValue[path](value) or kAdvice[path]
end

-- What to write instead of an argument whose key is not known: the longest beginning of its path that says something.
function M.argument_hint(root, override)
  local parts = override.parts
  local last = parts[#parts].key
  local option = parts[1].key == "launch" and #parts == 2 and kSlurmOptions[last] and schema.field(root.fields, "launch")
  if option then
    return ("write  'launch.options+=[\"--%s=%s\"]'  (a line of #SBATCH)"):format(last:gsub("_", "-"), override.value or "...")
  end
  for count = #parts, 1, -1 do
    local path = overrides.path(parts, count)
    if type(parts[count].key) == "string" and native.absent(parts[count].key) then return native.absent(parts[count].key) end
    local advice = not schema.index(root)[path] and advice_on(path, override.value)
    local hint = count == #parts and renamed_argument(root, path, override) or advice
    if hint then return hint end
    local group = count < #parts and path_of[path]
    if kAdvice[last] == kLoader then return kLoader end
    local below = group and overrides.path(parts):gsub("^.-%.", group .. ".", 1)   -- optim.lr as optimizer.lr
    if group and count == 1 and schema.index(root)[below] and override.value then
      return "write  " .. overrides.shell_word(("%s=%s"):format(below, override.value))
    end
    if group and schema.index(root)[group] then
      return ("%s is called  %s  here;  tycho config %s  lists its keys"):format(path, group, group)
    end
  end
  return M.names_a_kind(root, overrides.path(parts), override.value)
end

-- model/llama=8b and optimizer/adamw=fused, which choose files of Hydra: what to write instead, or nil for other text.
function M.group_hint(root, text)
  local group, option, value = text:match "^%+*([%a_][%w_%.]*)/([%w_%-%.]+)=(.*)$"
  if not group then return nil end
  local path = schema.index(root)[group] and group or path_of[group] or group
  local field = schema.index(root)[path]
  local kind = field and field.type == "component" and (other_values.kind(option, field.kinds) or other_values.kind(value, field.kinds))
  if kind then return ("there are no groups of files here; a kind is chosen by  %s=%s"):format(path, kind) end
  return "there are no groups of files here; a path of keys has dots, as in  optimizer.lr=3e-4"
end

local kClock = { s = "s", sec = "s", seconds = "s", m = "m", min = "m", minutes = "m", h = "h", hr = "h", hours = "h", hour = "h",
  d = "d", days = "d", day = "d" }

-- "max_duration=1h": what ends a run after some time.
local function time_hint(path, value)
  local number, word = value:match "^([%d%.]+)%s*(%a+)$"
  if path ~= "max_duration" or not kClock[word] then return nil end
  return ("timeout %s%s tycho run RECIPE ...  saves and ends then; the same command resumes"):format(number, kClock[word])
end

-- train_data=folder, train_data=sft.jsonl: the kind is chosen by what the files are.
local function data_hint(path, value)
  local ending = value:match "%.(%w+)$"
  local kind = ending == "bin" and "tokens{path=" or ending == "txt" and "text{path=" or ending and "chat{path=" or "mds{local_dir="
  return "write  " .. overrides.shell_word(("%s=%s%s}"):format(path, kind, value))
end

-- What to write instead of a value that does not fit, or nil. `spec` is of the key that it was given for, when that is known.
function M.value_hint(path, value, spec)
  if kValues[path] and kValues[path][value] then return kValues[path][value] end
  if type(value) ~= "string" then return nil end
  local filled = other_values.instead_of_interpolation(path, value, not spec)
  if filled or not spec then return filled or time_hint(path, value) end
  if spec.namespace == "model" and value:find "[%-/]" then
    return "whole models are recipes, such as recipes/mpt-125m.lua; to load weights from a folder:  model.weights=FOLDER"
  end
  if spec.namespace == "data" and value:find "^[%w%./~_-]+$" then return data_hint(path, value) end
  local space = other_spaces.of_value(spec, value)
  if space then return "several values need a sweep:  tycho sweep RECIPE " .. overrides.shell_word(("%s=%s"):format(path, space)) end
  local _, second = value:match "^(%S+)%s+([%a_][%w_%.]*[:%+%-%*/]?=.*)$"
  if second then return "two arguments in one word: remove the quotes around them" end
  return time_hint(path, value)
end

-- Every name of another system that has a hint, sorted.
function M.all()
  local out, seen = {}, {}
  for _, names in ipairs { path_of, kAdvice, kByValue } do
    for name in pairs(names) do
      if not seen[name] and not name:find "^t%." then out[#out + 1], seen[name] = name, true end
    end
  end
  table.sort(out)
  return out
end

return M
