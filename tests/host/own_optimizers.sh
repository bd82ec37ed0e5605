#!/usr/bin/env bash
# Optimizers that a recipe writes in Lua: AdamW and Lion have the built-ins' bits in every precision, on one rank and on two that share
# the parameters; a run resumes on another mesh with the bits of one that was not interrupted; what is wrong starts nothing.
set -euo pipefail
export PATH=$TYCHO_BUILD/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
passed=0
fail() { echo "own_optimizers: $1"; [[ ! -e out ]] || tail -40 out; exit 1; }
wants() { grep -qF -- "$1" out || fail "expected \"$1\""; passed=$((passed + 1)); }

"$TYCHO_SOURCE_DIR/tests/make_tiny_data" 32
ln -s "$TYCHO_SOURCE_DIR/recipes/optim" optim
cat >own.lua <<'LUA'
local t = require "tycho"
local M = {}
M.adamw = t.optim.define {
  name = "own_adamw",
  defaults = { betas = { 0.9, 0.95 }, eps = 1e-8 },
  state = { exp_avg = "like", exp_avg_sq = "like" },
  update = function(p, g, s, h)
    local beta1, beta2 = h.betas[1], h.betas[2]
    s.exp_avg = s.exp_avg * beta1 + g * (1 - beta1)
    s.exp_avg_sq = s.exp_avg_sq * beta2 + g * g * (1 - beta2)
    local step = s.exp_avg / (t.sqrt(s.exp_avg_sq) * (1 / t.sqrt(1 - beta2 ^ h.step)) + h.eps)
    return p * (1 - h.weight_decay * h.lr) - step * (h.lr / (1 - beta1 ^ h.step))
  end,
}
M.lion = t.optim.define {
  name = "own_lion",
  defaults = { betas = { 0.9, 0.99 } },
  state = { exp_avg = "like" },
  update = function(p, g, s, h)
    local beta1, beta2 = h.betas[1], h.betas[2]
    local direction = t.sign(s.exp_avg * beta1 + g * (1 - beta1))
    s.exp_avg = s.exp_avg * beta2 + g * (1 - beta2)
    return p * (1 - h.weight_decay * h.lr) - direction * h.lr
  end,
}
return M
LUA
cat >tiny.lua <<'LUA'
local t = require "tycho"
local own = require "own"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "6ba"
r.model = t.model.llama { width = 32, layers = 2, heads = 2, ffn_width = 64, vocab_size = 384, tied = false }
local made = { adamw = t.optim.adamw, own_adamw = own.adamw, lion = t.optim.lion, own_lion = own.lion,
  ademamix = require "optim.ademamix", schedule_free = require "optim.schedule_free", cautious = require "optim.cautious_adamw",
  normuon = require "optim.normuon", soap = require "optim.soap" }
r.optimizer = made[t.arg("kind", "own_adamw")] { lr = 3e-3, weight_decay = 0.1 }
r.scheduler = t.sched.cosine { t_warmup = "2ba" }
r.param_groups = { { match = "norm", lr_scale = 0.5, weight_decay = 0.02 } }
r.tokenizer, r.train_data, r.threads = "data/tokenizer.json", t.data.mds { local_dir = "data" }, 1
r.ckpt.every, r.device = "3ba", "cpu"
if t.arg("set", "no") == "yes" then
  r.callbacks.set = t.control { batch_end = function(ctx) if ctx.step == 2 then ctx.cmd.set_optimizer("eps", 0.1) end end }
end
if t.arg("watched", "no") == "yes" then r.eval_data.val, r.eval = t.data.mds { local_dir = "data" }, { every = "1ba", batches = 2 } end
return r
LUA

# run NAME RANKS ARGUMENTS: trains to the end; weights_of NAME: what came of it.
run() {
  local name=$1 ranks=$2
  shift 2
  if ((ranks == 1)); then set -- tycho run tiny.lua "$@"; else set -- tycho launch -n "$ranks" run tiny.lua "$@"; fi
  "$@" run_name="$name" >out 2>&1 || fail "run $name ended with $?"
}
weights_of() { rm -rf "hf-$1"; tycho convert "runs/$1" "hf-$1" >out 2>&1 || fail "convert of $1 ended with $?"; }
same() {
  weights_of "$1"; weights_of "$2"
  cmp "hf-$1/model.safetensors" "hf-$2/model.safetensors" || fail "$1 and $2 differ"
  passed=$((passed + 1))
}

for kind in adamw lion; do
  for precision in fp32 bf16 stochastic; do
    more=(precision=bf16)
    [[ $precision != fp32 ]] || more=(precision=fp32)
    [[ $precision != stochastic ]] || more+=(master_weights=stochastic)
    for ranks in 1 2; do
      ((ranks == 1)) || more+=(parallel.dp_shard=2)
      run "$kind-$precision-$ranks" "$ranks" kind="$kind" "${more[@]}"
      run "own-$kind-$precision-$ranks" "$ranks" kind="own_$kind" "${more[@]}"
      same "$kind-$precision-$ranks" "own-$kind-$precision-$ranks"
    done
  done
done

# Three steps on two ranks that share the parameters, then on one: with canonical sums the bits are those of one rank throughout.
# NorMuon and SOAP update whole matrices, and have state of other shapes.
for kind in ademamix cautious normuon soap; do
  canonical=(kind=$kind parallel.reduce=canonical micro_batch=1sp)
  [[ $kind != soap ]] || canonical+=(optimizer.precondition_frequency=2)
  run "$kind-whole" 1 "${canonical[@]}"
  run "$kind-parts" 2 "${canonical[@]}" parallel.dp_shard=2 max_duration=3ba
  run "$kind-parts" 1 "${canonical[@]}"
  grep -qF "resumed from step 3" "runs/$kind-parts/events.jsonl" || fail "$kind did not resume"
  same "$kind-whole" "$kind-parts"
done

# A command sets a number of h on all ranks at the same step, as it does for the built-in optimizer, and holds after a resume.
canonical=(set=yes parallel.reduce=canonical micro_batch=1sp)
run set-builtin 1 kind=adamw "${canonical[@]}"
run set-whole 1 kind=own_adamw "${canonical[@]}"
run set-parts 2 kind=own_adamw "${canonical[@]}" parallel.dp_shard=2 max_duration=3ba
run set-parts 1 kind=own_adamw "${canonical[@]}"
wants "still holds, instead of optimizer.eps = 1e-08 of the recipe"
same set-builtin set-whole
same set-whole set-parts
weights_of adamw-fp32-1
! cmp -s hf-adamw-fp32-1/model.safetensors hf-set-whole/model.safetensors || fail "eps was not set"
tycho config runs/set-whole/recipe.lua --why optimizer.eps >out
wants "set, step 2 (pin)"

# Evaluations and exports use eval_weights; training does not notice.
losses() { grep -o '"loss":[^,}]*' "runs/$1/metrics.jsonl"; }
run plain 1 kind=schedule_free
run watched 1 kind=schedule_free watched=yes
[[ $(losses plain) == "$(losses watched)" ]] || fail "an evaluation changed the run"
same plain watched
grep -qF "evaluated the weights of eval_weights on val" runs/watched/events.jsonl || fail "the evaluation is not named"
newest=$(grep -o '"eval.loss":[^,}]*' runs/watched/metrics.jsonl | tail -1 | cut -d: -f2)
tycho eval runs/watched --json >out
wants "${newest:0:8}"

# The formulas are shown, counted and part of what the run is.
tycho config tiny.lua --why optimizer >out
wants "p = p * (1 - h.weight_decay * h.lr)"
tycho config tiny.lua >out
wants "optimizer computes"
tycho plan tiny.lua >out
before=$(tycho config tiny.lua --hash)
sed -i 's/1 - h.weight_decay \* h.lr/1 - h.lr * h.weight_decay * 1.5/' own.lua
[[ $(tycho config tiny.lua --hash) != "$before" ]] || fail "another formula has the same hash"
passed=$((passed + 1))

# Keys of the recipe's own optimizer are swept.
cat >sweep.lua <<'LUA'
local t = require "tycho"
local s = t.sweep "alpha"
s.recipe, s.metric.name = "tiny.lua", "loss"
s.space["optimizer.alpha"] = t.space.choice { 0, 4 }
s.launch = t.launch.workers { count = 1 }
return s
LUA
sed -i 's/"own_adamw")/"ademamix")/' tiny.lua
tycho sweep sweep.lua >out 2>&1 || fail "the sweep ended with $?"
[[ $(tycho sweep table alpha --json | grep -c '"finished"') == 2 ]] || fail "expected two finished trials"
passed=$((passed + 1))

# What is wrong starts nothing.
refused() {
  local status=0
  printf '%s\n' 'local t = require "tycho"' 'local own = t.optim.define { name = "own", defaults = { a = 2 }, state = { m = "like" }, update = function(p, g, s, h)' \
    "$1" 'end }' 'local r = require("tiny"):extend "wrong"' 'r.optimizer = own { lr = 1 }' 'return r' >wrong.lua
  tycho run wrong.lua >out 2>&1 || status=$?
  ((status == 10)) || fail "expected exit code 10 of: $1; got $status"
  [[ ! -e runs/wrong ]] || fail "$1 started a run"
  wants "wrong.lua:3"
  wants "$2"
}
refused 'if g:gt(0) then p = -p end return p' 'depends on whether this comparison holds'
refused 'while true do end' 'is there an endless loop?'
refused 'for _ = 1, 1e6 do p = p * g end return p' 'more than 4096 operations'
refused 'return p < g' 'cannot be traced'
refused 'return p + s.n' 'no s.n'
refused 'return g:sum("row"):sum("column") + t.where(p, 1, 2)' 'expected a condition'

echo "$passed passed, 0 failed" | tee "$TYCHO_RESULT"
