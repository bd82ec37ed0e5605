-- Trains Llama 3 8B further on text of one field, with the numbers of LLM Foundry's llama-3-8b_domain_adapt.yaml.
-- The folder is one of Hugging Face (meta-llama/Meta-Llama-3-8B: config.json, safetensors, tokenizer.json).
local t = require "tycho"
local r = t.recipe "finetune-llama-3-8b"

local folder = t.env("TYCHO_MODEL", "models/llama-3-8b")

r.model        = t.model.hf { path = folder }
r.seq_len      = 4096
r.global_batch = "1024sp"
r.micro_batch  = "8sp"
r.max_duration = "3195ba"                                  -- 13.4B tokens
r.precision    = "bf16"
r.seed         = 17
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                   -- all ranks share the model (FSDP)

r.optimizer = t.optim.decoupled_adamw { lr = 5e-5, betas = { 0.9, 0.95 }, eps = 1e-8, weight_decay = 0 }
r.scheduler = t.sched.cosine { t_warmup = "100ba", alpha_f = 0.1, compat = "composer" }
r.clip.norm = 1.0

-- Made by: tycho data convert --concat-tokens 4096 --bos-text '<|begin_of_text|>'. That token is 128000; attention stays
-- within the documents that it begins.
local data = t.env("TYCHO_DATA", "data/field")
r.train_data = t.data.mds { local_dir = data, bos_token_id = 128000 }
r.ckpt = { every = "500ba", keep = 1 }

return r
