-- Instruction tuning of a model in Hugging Face's format, with a schedule and a guard of one's own.
local t = require "tycho"
local r = t.recipe "sft"

r.model         = t.model.hf { path = "hf" }
r.seq_len       = 64
r.tokenizer     = "data/tokenizer.json"
r.train_data    = t.data.chat { path = "sft.jsonl", pack = true }
r.eval_data.dev = t.data.chat { path = "dev.jsonl" }
r.global_batch, r.max_duration, r.eval.every = "4sp", "2ep", "0.25dur"
r.optimizer     = t.optim.adamw { lr = 1e-3, betas = { 0.9, 0.95 }, weight_decay = 0.1 }
r.ckpt          = { every = "0.25dur", keep = 0 }

-- warm-up, hold, then a square-root cool-down: tabulated before step 0, never called while training
r.scheduler = t.sched.fn("wsd", function(s)
  local warm, hold = 0.03, 0.80
  if s.frac < warm then return s.frac / warm end
  if s.frac < hold then return 1 end
  return 1 - math.sqrt((s.frac - hold) / (1 - hold))
end)

-- rank 0 looks, everybody obeys
r.callbacks.spike = t.control {
  every = "1ba", on_error = "disable",
  state = { mean = 0, var = 0, quiet = 0 },        -- plain data: saved in every checkpoint
  batch_end = function(ctx, st)
    if not (ctx.loss < math.huge) then return end
    local d = ctx.loss - st.mean
    if ctx.step > 3 and d > 6 * math.sqrt(st.var) and st.quiet == 0 then
      ctx.log:warn("loss spike", { loss = ctx.loss, mean = st.mean })
      ctx.cmd.scale_lr(0.5, { for_next = "200ba" })  -- queued; dropped if this function raises
      ctx.cmd.save("spike")
      st.quiet = 200
    end
    st.quiet = math.max(0, st.quiet - 1)
    st.mean, st.var = st.mean + 0.02 * d, 0.98 * (st.var + 0.02 * d * d)
  end,
}
r.callbacks.best = t.control {
  eval_end = function(ctx)
    if ctx.eval.dev.loss == ctx.eval.dev.best.loss then ctx.cmd.save("best") end
  end,
}
return r
