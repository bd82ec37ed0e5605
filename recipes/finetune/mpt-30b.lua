-- Finetunes MPT-30B with the numbers of LLM Foundry's mpt-30b-instruct.yaml, on prompts with responses.
-- The folder is one of Hugging Face (mosaicml/mpt-30b: config.json, safetensors, tokenizer.json).
local t = require "tycho"
local r = t.recipe "finetune-mpt-30b"

local folder = t.env("TYCHO_MODEL", "models/mpt-30b")

r.model        = t.model.hf { path = folder }
r.seq_len      = 8192
r.global_batch = "72sp"                                    -- of packed rows; divides by 72, 36, 24, ... ranks, not by 64
r.micro_batch  = "1sp"
r.max_duration = "8ep"
r.precision    = "bf16"
r.seed         = 17
r.recompute.mode = "full"
r.parallel.dp_shard = -1

r.optimizer = t.optim.decoupled_adamw { lr = 9.65e-6, betas = { 0.9, 0.95 }, eps = 1e-8, weight_decay = 0 }
r.scheduler = t.sched.linear { t_warmup = "50ba", alpha_f = 0, compat = "composer" }
r.clip.norm = 1.0

-- mosaicml/instruct-v3, or a folder with train.jsonl and test.jsonl: a row is { "prompt": ..., "response": ... }. Packed, as there (packing_ratio = 9); here
-- examples in a row do not see each other.
local data = t.env("TYCHO_DATA", "data/instruct")
r.tokenizer      = folder .. "/tokenizer.json"
r.train_data     = t.data.chat { path = data, pack = true }
r.eval_data.test = t.data.chat { path = data, split = "test", pack = true }
r.eval = { every = "1ep", first = true }
r.ckpt = { every = "0.375dur", keep = 1 }                  -- 3 epochs

return r
