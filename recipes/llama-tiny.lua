-- The smallest Llama worth training: a starting point for recipes of your own.
local t = require "tycho"
local r = t.recipe "llama-tiny"

r.seq_len      = 512
r.global_batch = "32sp"
r.max_duration = "2000ba"

r.model     = t.model.llama { width = 384, layers = 6, heads = 6, ffn_width = 1024, vocab_size = 8192, tied = true }
r.optimizer = t.optim.adamw { lr = 1e-3, weight_decay = 0.1 }
r.scheduler = t.sched.wsd { t_warmup = "0.02dur", t_decay = "0.2dur", decay_type = "sqrt" }

-- Made by: tycho tokenizer train ... and tycho data convert ...
r.tokenizer  = "data/tokenizer.json"
r.train_data = t.data.mds { local_dir = "data" }

r:check("tokens", function(c)
  return c.total_tokens <= 2e9, "a model this small learns little beyond 2B tokens: is max_duration right?"
end)

return r
