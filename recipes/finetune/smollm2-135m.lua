-- Finetunes SmolLM2-135M on conversations.
-- The folder is the hub's (HuggingFaceTB/SmolLM2-135M-Instruct: config.json, safetensors, tokenizer.json); its template makes text of the messages.
local t = require "tycho"
local r = t.recipe "finetune-smollm2-135m"

r.model        = t.model.hf { path = t.env("TYCHO_MODEL", "models/smollm2-135m") }
r.seq_len      = 2048
r.global_batch = "32sp"
r.micro_batch  = "4sp"
r.max_duration = "3ep"
r.precision    = "bf16"
r.recompute.mode = "selective"

r.optimizer = t.optim.adamw { lr = 1e-4, betas = { 0.9, 0.95 }, weight_decay = 0.01 }
r.scheduler = t.sched.cosine { t_warmup = "0.03dur", alpha_f = 0.1 }
r.clip.norm = 1.0

r.train_data = t.data.chat { path = t.env("TYCHO_DATA", "data/sft.jsonl"), template = "tokenizer", pack = true }
r.ckpt = { every = "500ba", keep = 1 }

return r
