-- The ready-made callbacks of t.cb, written like any recipe's: functions of the event's ctx and a state. Each takes its
-- fields and gives kind, functions by event, and the state to begin with.
local M = {}

local function observe(functions, state) return { kind = "observe", functions = functions, state = state } end
local function control(functions, state) return { kind = "control", functions = functions, state = state } end
-- What reads parameters needs all ranks, which may share them; rank 0 records.
local function everywhere(functions) return { kind = "everywhere", functions = functions } end

function M.speed()
  return observe { batch_end = function(ctx)
    ctx.log:metric("speed/batches_per_s", 1e3 / ctx.step_ms)
    ctx.log:metric("speed/samples_per_s", ctx.samples_per_s)
    ctx.log:metric("speed/tokens_per_s", ctx.tokens_per_s)
  end }
end

function M.memory()
  return observe { batch_end = function(ctx)
    local now = ctx.mem:snapshot()
    ctx.log:metric("memory/peak_bytes", now.peak)
    ctx.log:metric("memory/allocated_bytes", now.allocated)
    ctx.log:metric("memory/lua_bytes", now.lua)
  end }
end

function M.lr()
  return observe { batch_end = function(ctx)
    for i, group in ipairs(ctx.opt.groups) do
      if not group.frozen then ctx.log:metric(("lr/group%d"):format(i), ctx.lr * group.lr_scale) end
    end
  end }
end

local function clock(seconds)
  local minutes = math.floor(seconds / 60)
  return ("%d h %02d min"):format(math.floor(minutes / 60), minutes % 60)
end

function M.runtime_estimate()
  return observe { batch_end = function(ctx)
    ctx.log:metric("time/remaining_s", ctx.eta_s)
    ctx.log:info(("%s left after step %d of %d"):format(clock(ctx.eta_s), ctx.step, ctx.total_steps))
  end }
end

function M.loss_ema(config)
  local beta = config.beta
  return observe({ batch_end = function(ctx, st)
    st.steps = st.steps + 1
    st.mean = beta * st.mean + (1 - beta) * ctx.loss
    ctx.log:metric("loss_ema", st.mean / (1 - beta ^ st.steps))
  end }, { mean = 0, steps = 0 })
end

-- What ctx.eval says of the set in "eval.NAME.loss", or of all sets in "eval.loss"; and the name of the number.
local function evaluated(ctx, metric)
  local set, figure = metric:match("^eval%.([^%.]+)%.(%a+)$")
  if set then return ctx.eval[set], figure end
  return ctx.eval, metric:match("^eval%.(%a+)$")
end

function M.early_stop(config)
  local metric, patience, min_delta = config.metric, config.patience, config.min_delta
  return control({ eval_end = function(ctx, st)
    local scores, figure = evaluated(ctx, metric)
    if not st.best or scores[figure] < st.best - min_delta then
      st.best, st.worse = scores[figure], 0
      return
    end
    st.worse = st.worse + 1
    if st.worse >= patience then
      ctx.cmd.stop(("none of the last %d evaluations was better than %g"):format(patience, st.best))
    end
  end }, { worse = 0 })
end

function M.checkpoint_best(config)
  local metric, tag = config.metric, config.tag
  return control { eval_end = function(ctx)
    local scores = evaluated(ctx, metric)
    if scores.step == scores.best.step then ctx.cmd.save(tag) end
  end }
end

local function on_spike(ctx, config, st)
  st.quiet = config.for_next.value
  ctx.log:warn("loss spike", { loss = ctx.loss, mean = st.mean })
  if config.action == "stop" then
    ctx.cmd.stop(("the loss %g is a spike above %g"):format(ctx.loss, st.mean))
  elseif config.action == "scale_lr" then
    ctx.cmd.scale_lr(config.factor, { for_next = tostring(config.for_next) })
    ctx.cmd.save("spike")
  end
end

-- Mean and variance move slowly; a spike leaves them as they are, so that it does not hide the next one.
function M.loss_spike(config)
  local given = { sigmas = config.sigmas, warmup = config.warmup.value, action = config.action, factor = config.factor,
    for_next = config.for_next }
  return control({ batch_end = function(ctx, st)
    if not st.mean then st.mean = ctx.loss end
    local above = ctx.loss - st.mean
    local spike = ctx.step > given.warmup and above > given.sigmas * math.sqrt(st.var)
    if spike and st.quiet == 0 then return on_spike(ctx, given, st) end
    st.quiet = math.max(0, st.quiet - 1)
    if spike then return end
    st.mean, st.var = st.mean + 0.02 * above, 0.98 * (st.var + 0.02 * above * above)
  end }, { var = 0, quiet = 0 })
end

function M.generate(config)
  local prompts, options = {}, { max_tokens = config.max_tokens, temperature = config.temperature }
  for i = 1, #config.prompts do prompts[i] = config.prompts[i] end   -- a proxy of the recipe: ipairs wants a table
  return everywhere { batch_end = function(ctx)
    options.seed = ctx.step
    for _, prompt in ipairs(prompts) do
      ctx.log:text(prompt, ctx.model:generate(prompt, options))
    end
  end }
end

-- The name of a parameter's layer, "layer 3", or its own for embedding and head.
local function layer_of(name)
  local number = name:match("%.(%d+)%.")
  return number and "layer" .. number or name
end

function M.grad_norm(config)
  local per_layer = config.per == "layer"
  return everywhere { grads_ready = function(ctx)
    local sums, names = {}, {}
    for name, param in ctx.model.params do
      local key, grad = per_layer and layer_of(name) or name, param.grad
      if grad and not sums[key] then sums[key], names[#names + 1] = 0, key end
      if grad then sums[key] = sums[key] + grad:norm() ^ 2 end   -- frozen ones have none
    end
    for _, key in ipairs(names) do ctx.log:metric("grad_norm/" .. key, math.sqrt(sums[key])) end
  end }
end

function M.activations()
  return observe { after_forward = function(ctx)
    for i, one in ipairs(ctx.activations) do
      ctx.log:metric(("activations/layer%d/rms"):format(i - 1), one.rms)
      ctx.log:metric(("activations/layer%d/max"):format(i - 1), one.max)
    end
  end }
end

return M
