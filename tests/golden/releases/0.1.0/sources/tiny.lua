-- A tiny run of each release: tests/golden/make_release_run.sh.
local t = require "tycho"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "8ba"
r.model = t.model.llama { width = 16, layers = 1, heads = 2, ffn_width = 32, vocab_size = 384, tied = true }
r.optimizer = t.optim.adamw { lr = 6e-4 }
r.scheduler = t.sched.cosine { t_warmup = "2ba" }
r.ckpt.every, r.ckpt.keep = "4ba", 1
r.tokenizer, r.train_data, r.threads = "data/tokenizer.json", t.data.mds { local_dir = "data" }, 1
r.eval_data.val, r.eval.every, r.eval.batches = t.data.mds { local_dir = "data" }, "4ba", 2
return r
