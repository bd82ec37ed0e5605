-- Finetunes MPT-7B with the numbers of LLM Foundry's mpt-7b_dolly_sft.yaml, on prompts with responses.
-- The folder is one of Hugging Face (mosaicml/mpt-7b: config.json, safetensors, tokenizer.json).
local t = require "tycho"
local r = t.recipe "finetune-mpt-7b"

local folder = t.env("TYCHO_MODEL", "models/mpt-7b")

r.model        = t.model.hf { path = folder }
r.seq_len      = 2048
r.global_batch = "48sp"
r.micro_batch  = "6sp"                                     -- 8 in the YAML, but each of eight GPUs has 6 of the 48
r.max_duration = "2ep"
r.precision    = "bf16"
r.seed         = 17
r.recompute.mode = "full"
r.parallel.dp_shard = -1                                   -- all ranks share the model (FSDP)

r.optimizer = t.optim.decoupled_adamw { lr = 5e-6, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = 0 }
r.scheduler = t.sched.linear { t_warmup = "50ba", alpha_f = 0, compat = "composer" }
r.clip.norm = 1.0

-- mosaicml/dolly_hhrlhf, or a folder with train.jsonl and test.jsonl: a row is { "prompt": ..., "response": ... }. One a row of tokens, as there; pack = true
-- takes a fraction of the rows.
local data = t.env("TYCHO_DATA", "data/finetune")
r.tokenizer      = folder .. "/tokenizer.json"
r.train_data     = t.data.chat { path = data }
r.eval_data.test = t.data.chat { path = data, split = "test" }
r.eval = { every = "1ep", first = true }
r.ckpt = { every = "0.5dur", keep = 1 }

return r
