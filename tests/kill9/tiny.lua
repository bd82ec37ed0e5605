-- A run of a few seconds that saves all the time: what run_kill9.sh kills.
local t = require "tycho"
local r = t.recipe "tiny"

r.seq_len      = 64
r.global_batch = "4sp"
r.max_duration = "600ba"
r.model        = t.model.llama { width = 64, layers = 2, heads = 4, kv_heads = 2, ffn_width = 128, vocab_size = 512, tied = true }
r.optimizer    = t.optim.adamw { lr = 3e-3, weight_decay = 0.1 }
r.scheduler    = t.sched.wsd { t_warmup = "10ba", t_decay = "100ba" }
r.tokenizer    = "data/tokenizer.json"
r.train_data   = t.data.mds { local_dir = "data" }
r.ema          = { half_life = "20ba" }
r.ckpt.every   = "5ba"
r.ckpt.keep    = 2

-- Its rates depend on all losses so far: a resumed run that forgot one would end elsewhere.
r.callbacks.steer = t.control {
  state = { sum = 0 },
  batch_end = function(ctx, st)
    st.sum = st.sum + ctx.loss + 1e-3 * math.random()
    if ctx.step % 90 == 0 then ctx.cmd.scale_lr(0.5 + st.sum / (20 * ctx.step), { for_next = "70ba" }) end
    if ctx.step == 250 then ctx.cmd.set_betas { 0.8, 0.9 } end
    if ctx.step % 130 == 0 then ctx.cmd.skip_batches(2) end
  end,
}

return r
