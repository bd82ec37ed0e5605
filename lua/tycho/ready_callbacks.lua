-- The ready-made callbacks of t.cb, written like any recipe's: functions of the event's ctx and a state. Each takes its
-- fields and gives kind, functions by event, and the state to begin with.
local M = {}

local function observe(functions, state) return { kind = "observe", functions = functions, state = state } end
local function control(functions, state) return { kind = "control", functions = functions, state = state } end
-- What reads parameters needs all ranks, which may share them; rank 0 records.
local function everywhere(functions) return { kind = "everywhere", functions = functions } end

-- Neither NaN nor infinite.
local function is_finite(x) return x ~= nil and x - x == 0 end

-- Whether a callback may remember the loss of this step: guard.action = "skip" goes on after a loss that is not finite,
-- which a mean would keep for ever, and a checkpoint cannot hold. Says once that one is left out.
local function is_kept(ctx, st, name)
  if is_finite(ctx.loss) then return true end
  if not st.told then ctx.log:warn(name .. " leaves out losses that are not finite", { loss = ctx.loss }) end
  st.told = true
  return false
end

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
    if not is_kept(ctx, st, "loss_ema") then return end
    st.steps = st.steps + 1
    st.mean = beta * st.mean + (1 - beta) * ctx.loss
    ctx.log:metric("loss_ema", st.mean / (1 - beta ^ st.steps))
  end }, { mean = 0, steps = 0 })
end

-- What ctx.eval says of the set in "eval.NAME.loss", or of all sets in "eval.loss"; and the name of the number.
local function evaluated(ctx, metric)
  local set, figure = metric:match("^eval%.([^%.]+)%.([%a_]+)$")
  if set then return ctx.eval[set], figure end
  return ctx.eval, metric:match("^eval%.([%a_]+)$")
end

function M.early_stop(config)
  local metric, patience, min_delta = config.metric, config.patience, config.min_delta
  return control({ eval_end = function(ctx, st)
    local scores, figure = evaluated(ctx, metric)
    local score = scores[figure]
    if is_finite(score) and (not st.best or score < st.best - min_delta) then   -- others are worse than every number
      st.best, st.worse = score, 0
      return
    end
    st.worse = st.worse + 1
    if st.worse < patience then return end
    ctx.cmd.stop(("none of the last %d evaluations was %s"):format(patience,
      st.best and ("better than %g"):format(st.best) or "a finite number"))
  end }, { worse = 0 })
end

function M.threshold_stop(config)
  local metric, below = config.metric, config.below
  return control { eval_end = function(ctx)
    local scores, figure = evaluated(ctx, metric)
    local score = scores[figure]   -- none of a set without text
    if score and score < below then ctx.cmd.stop(("%s is %g, below %g"):format(metric, score, below)) end
  end }
end

-- ctx.eval.best has the lowest loss, which need not have the lowest bits per byte: special tokens count in one alone.
local function save_at_lowest(metric, tag)
  return control({ eval_end = function(ctx, st)
    local scores, figure = evaluated(ctx, metric)
    local score = scores[figure]
    if not is_finite(score) or (st.best and score >= st.best) then return end
    st.best = score
    ctx.cmd.save(tag)
  end }, {})
end

function M.checkpoint_best(config)
  local metric, tag = config.metric, config.tag
  if metric:find("bits_per_byte", 1, true) then return save_at_lowest(metric, tag) end
  return control { eval_end = function(ctx)
    local scores = evaluated(ctx, metric)
    if scores.step == scores.best.step and is_finite(scores.loss) then ctx.cmd.save(tag) end   -- the lowest loss is best
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

-- Whether the loss is far above its mean. Mean and variance move slowly; a spike leaves them as they are, so that it does
-- not hide the next one.
local function is_spike(ctx, st, sigmas, warmup)
  if not st.mean then st.mean = ctx.loss end
  local above = ctx.loss - st.mean
  if ctx.step > warmup and above > sigmas * math.sqrt(st.var) then return true end
  st.mean, st.var = st.mean + 0.02 * above, 0.98 * (st.var + 0.02 * above * above)
  return false
end

function M.loss_spike(config)
  local given = { sigmas = config.sigmas, warmup = config.warmup.value, action = config.action, factor = config.factor,
    for_next = config.for_next }
  return control({ batch_end = function(ctx, st)
    if not is_kept(ctx, st, "loss_spike") then return end
    if is_spike(ctx, st, given.sigmas, given.warmup) and st.quiet == 0 then return on_spike(ctx, given, st) end
    st.quiet = math.max(0, st.quiet - 1)
  end }, { var = 0, quiet = 0 })
end

-- Spikes, one in 200 steps. Alerts are posted by the run's reporter, which tells of ends and stalls by itself.
function M.notify(config)
  local sigmas = config.sigmas
  return observe({ batch_end = function(ctx, st)
    local spike = not is_finite(ctx.loss) or is_spike(ctx, st, sigmas, 100)
    if not spike or st.quiet > 0 then
      st.quiet = math.max(0, st.quiet - 1)
      return
    end
    st.quiet = 200
    local mean = st.mean and ("; its average is %g"):format(st.mean) or ""
    ctx.log:alert("loss spike", ("loss %g at step %d%s"):format(ctx.loss, ctx.step, mean))
  end }, { var = 0, quiet = 0 })
end

local function mean_of(list)
  local sum = 0
  for _, value in ipairs(list) do sum = sum + value end
  return sum / #list
end

local function count_above(list, limit)
  local count = 0
  for _, value in ipairs(list) do if value > limit then count = count + 1 end end
  return count
end

-- What LLM Foundry's rule has against this loss, with the losses of the steps before it; nil for nothing.
local function high_loss(ctx, rule, st)
  local mean = mean_of(st.losses)
  st.outliers = ctx.loss >= mean * rule.outlier_multiplier and st.outliers + 1 or 0
  if st.outliers > rule.patience then
    return ("%d losses in a row were at least %g times the mean of %d steps, %g"):format(st.outliers,
      rule.outlier_multiplier, rule.window, mean)
  end
  local high = count_above(st.losses, rule.loss_cap)
  if ctx.step >= 2 * rule.window and high >= rule.window / 2 then
    return ("%d of the last %d losses were above %g"):format(high, rule.window, rule.loss_cap)
  end
end

function M.kill_loss_spike(config)
  local rule = { action = config.action, patience = config.patience, window = config.window,
    outlier_multiplier = config.outlier_multiplier, loss_cap = config.loss_cap }
  return control({ batch_end = function(ctx, st)
    if not is_kept(ctx, st, "kill_loss_spike") then return end
    local why = #st.losses == rule.window and high_loss(ctx, rule, st)
    if #st.losses == rule.window then table.remove(st.losses, 1) end
    st.losses[#st.losses + 1] = ctx.loss
    if why and rule.action == "stop" then
      ctx.cmd.stop(why .. "; a lower learning rate may help")
    elseif why and not st.warned then
      ctx.log:warn("the loss stays high: " .. why)
    end
    st.warned = why and true or false   -- once for each time that it stays high
  end }, { losses = {}, outliers = 0, warned = false })
end

function M.generate(config)
  local prompts, options = {}, { max_tokens = config.max_tokens, temperature = config.temperature }
  for i = 1, #config.prompts do prompts[i] = config.prompts[i] end   -- a proxy of the recipe: ipairs wants a table
  return everywhere { batch_end = function(ctx)
    options.seed = ctx.step
    for _, prompt in ipairs(prompts) do
      local ok, text = pcall(ctx.model.generate, ctx.model, prompt, options)
      if ok then
        ctx.log:text(prompt, text)
      elseif tostring(text):find("logits are not numbers", 1, true) then   -- on all ranks, or on none
        ctx.log:warn(("no text for %q: %s"):format(prompt, tostring(text)))
      else
        error(text, 0)
      end
    end
  end }
end

-- The name of a parameter's layer, "layer 3", or its own for embedding and head.
local function layer_of(name)
  local number = name:match("%.(%d+)%.")
  return number and "layer" .. number or name
end

-- Records the norm of what tensor_of gives of each parameter, all of a layer together or each by itself.
local function record_norms(ctx, per, prefix, tensor_of)
  local sums, names = {}, {}
  for name, param in ctx.model.params do
    local key, tensor = per == "layer" and layer_of(name) or name, tensor_of(param)
    if tensor and not sums[key] then sums[key], names[#names + 1] = 0, key end
    if tensor then sums[key] = sums[key] + tensor:norm() ^ 2 end
  end
  for _, key in ipairs(names) do ctx.log:metric(prefix .. key, math.sqrt(sums[key])) end
end

local function itself(param) return param end
local function gradient(param) return param.grad end   -- frozen ones have none

function M.grad_norm(config)
  local per = config.per
  return everywhere { grads_ready = function(ctx) record_norms(ctx, per, "grad_norm/", gradient) end }
end

function M.param_norm(config)
  local per = config.per
  return everywhere { batch_end = function(ctx) record_norms(ctx, per, "param_norm/", itself) end }
end

-- What AdamW took from a parameter in the step that is done: its weights before, minus those after. nil for what is not
-- updated by AdamW.
local function adamw_update(ctx, group, param)
  local first, second = param:moment("exp_avg"), param:moment("exp_avg_sq")
  if not second then return nil end
  local opt, lr = ctx.opt, ctx.lr * group.lr_scale
  local mean = first / (1 - group.betas[1] ^ ctx.step)
  local update = mean / ((second / (1 - group.betas[2] ^ ctx.step)):sqrt() + opt.eps) * lr
  local decay = group.weight_decay * (opt.kind == "adamw" and lr or ctx.lr / opt.peak_lr)
  return decay > 0 and update + (param + update) * (decay / (1 - decay)) or update
end

-- Sums of squares, and of products of moment and gradient, of the parameters that are recorded together.
local function add_norms(sums, tensors, grad_norm)
  for kind, tensor in pairs(tensors) do sums[kind] = (sums[kind] or 0) + tensor:norm() ^ 2 end
  sums.grad = (sums.grad or 0) + grad_norm ^ 2
end

local function optimizer_sums(ctx, per)
  local sums, names, group_of = {}, {}, {}
  for _, group in ipairs(ctx.opt.groups) do
    for _, name in ipairs(group.params) do group_of[name] = group end
  end
  local is_adamw = ctx.opt.kind:find("adamw", 1, true)
  for name, param in ctx.model.params do
    local grad, key = param.grad, per == "layer" and layer_of(name) or name
    if grad then   -- frozen ones have none
      if not sums[key] then sums[key], names[#names + 1] = { product = 0 }, key end
      local moment = param:moment("exp_avg") or param:moment("momentum_buffer")
      add_norms(sums[key], { param = param, moment = moment,
        update = is_adamw and adamw_update(ctx, group_of[name], param) or nil }, grad:norm())
      if moment then sums[key].product = sums[key].product + (moment * grad):mean() * grad.numel end
    end
  end
  return sums, names
end

function M.optimizer_monitor(config)
  local per = config.per
  return everywhere { batch_end = function(ctx)
    local sums, names = optimizer_sums(ctx, per)
    for _, key in ipairs(names) do
      local of = sums[key]
      for _, kind in ipairs { "grad", "moment", "param", "update" } do
        if of[kind] then ctx.log:metric(("l2_norm/%s/%s"):format(kind, key), math.sqrt(of[kind])) end
      end
      if of.moment and of.moment * of.grad > 0 then
        ctx.log:metric("cosine/moment_grad/" .. key, of.product / math.sqrt(of.moment * of.grad))
      end
    end
    ctx.log:metric("l2_norm/grad/global", ctx.grad_norm)
  end }
end

local function record_histograms(ctx, bins, prefix, tensor_of)
  for name, param in ctx.model.params do
    local tensor = tensor_of(param)
    if tensor then ctx.log:histogram(prefix .. name, tensor, bins) end
  end
end

function M.histograms(config)
  local of, bins, functions = config.of, config.bins, {}
  if of ~= "parameters" then
    functions.grads_ready = function(ctx) record_histograms(ctx, bins, "gradients/", gradient) end
  end
  if of ~= "gradients" then
    functions.batch_end = function(ctx) record_histograms(ctx, bins, "parameters/", itself) end
  end
  return everywhere(functions)
end

function M.machine_use()
  local busy, all   -- seconds of all processors, at the call before
  return observe { batch_end = function(ctx)
    local use = ctx.mem:machine()
    if all and use.cpu_s > all then ctx.log:metric("machine/cpu_share", (use.cpu_busy_s - busy) / (use.cpu_s - all)) end
    busy, all = use.cpu_busy_s, use.cpu_s
    for _, name in ipairs { "memory_used_bytes", "memory_free_bytes", "process_bytes", "disk_free_bytes" } do
      ctx.log:metric("machine/" .. name, use[name])
    end
    for i, gpu in ipairs(use.gpus) do
      for _, name in ipairs { "busy_share", "memory_used_bytes", "memory_free_bytes", "power_w", "temperature_c" } do
        if gpu[name] >= 0 then ctx.log:metric(("machine/gpu%d/%s"):format(i - 1, name), gpu[name]) end
      end
    end
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
