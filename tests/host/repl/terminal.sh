#!/usr/bin/env bash
# The REPL as a person meets it: `tycho repl` with the real engine in a terminal (tmux), along the transcript that it was
# designed after.
set -euo pipefail
command -v tmux >/dev/null || { echo "skipped: no tmux"; exit 77; }
tycho=$TYCHO_BUILD/bin/tycho work=$(mktemp -d "${TMPDIR:-/tmp}/tycho-repl-XXXXXX")
tm() { tmux -L "tycho-$$" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
PATH=$TYCHO_BUILD/bin:$PATH "$TYCHO_SOURCE_DIR/tests/make_tiny_data" 32
cat >tiny.lua <<'RECIPE'
local t = require "tycho"
local r = t.recipe "tiny"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "60ba"
r.model = t.model.llama { width = 32, layers = 2, heads = 2, ffn_width = 64, vocab_size = 384, tied = true }
r.optimizer = t.optim.adamw { lr = 6e-4 }
r.scheduler = t.sched.cosine { t_warmup = "4ba" }
r.callbacks.tell = t.observe { every = "10ba", batch_end = function(ctx) ctx.log:info("told at " .. ctx.step) end }
r.tokenizer, r.train_data, r.threads = "data/tokenizer.json", t.data.mds { local_dir = "data" }, 1
return r
RECIPE
cat >failing.lua <<'RECIPE'
local t = require "tycho"
local r = require "tiny" :extend "failing"
r.callbacks.boom = t.control { state = { seen = 0 }, batch_end = function(ctx, st)
  local half = ctx.step / 2
  st.seen = st.seen + 1
  if ctx.step == 4 then error("boom at " .. half) end
end }
return r
RECIPE

tm new-session -d -x 110 -y 40 "env LANG=C.UTF-8 XDG_STATE_HOME=$work/state bash --norc --noprofile" 2>/dev/null ||
  { echo "skipped: tmux finds no pseudo terminal"; exit 77; }
tm set-option -g history-limit 5000
passed=0
screen() { tm capture-pane -p -S - -J; }
# Waits until the screen has so many lines that match.
see() {
  local wanted=${2:-1} i
  for ((i = 0; i < 300; i++)); do
    (($(screen | grep -c -E -- "$1") >= wanted)) && { passed=$((passed + 1)); return; }
    sleep 0.1
  done
  echo "expected $wanted lines with: $1"; screen | grep -v '^$' | tail -40; echo "$passed passed, 1 failed" >"$TYCHO_RESULT"; exit 1
}
# Waits until the newest line is an empty prompt (of the REPL, of its continuation, of the shell): keys that come before
# readline listens are the terminal's.
ready() {
  local i
  for ((i = 0; i < 300; i++)); do
    screen | grep -v '^$' | tail -1 | grep -qE '^(>+|bash-.*[#$]) *$' && return
    sleep 0.1
  done
  echo "no prompt"; screen | grep -v '^$' | tail -40; echo "$passed passed, 1 failed" >"$TYCHO_RESULT"; exit 1
}
enter() { ready; tm send-keys -l -- "$1"; tm send-keys Enter; }
# Waits for the checkpoint of a step: it is written while training goes on, and only a whole one can be loaded.
committed() {
  local i
  for ((i = 0; i < 300; i++)); do
    if compgen -G "runs/*/checkpoints/step-0*$1.*/COMMIT" >/dev/null; then return; fi
    sleep 0.1
  done
}
# Types, asks for completion, waits for what it makes of the line and leaves the line.
complete() { ready; tm send-keys -l -- "$1"; tm send-keys Tab; see "$2"; tm send-keys C-c; }

enter "$tycho repl tiny.lua micro_batch=2sp"
see '^tycho .*[?]help  ;shell  :commands  \^D'
see '^recipe tiny  hash [0-9a-f]{8}  [0-9]+ parameters  60 ba   not built yet'
enter 'r.optimizer';                         see '^adamw \{ lr = 0.0006, betas = \{0.9, 0.95\}.* -- tiny.lua:5'
enter '?r.optimizer.lr';                     see '^optimizer.lr : number > 0, required.*Peak learning rate.*set: tiny.lua:5'
enter 'r.optimizer.betaz = 1';               see 'unknown key  optimizer.betaz'; see '\^\^\^\^\^ did you mean  betas'
enter ':plan';                               see 'parameters'
enter 'trainer = build(r)'
enter 'trainer:step(20)';                    see '^  told at 10$'; see '20/60 ba  loss [0-9.]+ → [0-9.]+  lr '; see '^  loss .*…'
enter 'w = model:find "layers.1.self_attn.q_proj.weight"'
enter 'w';                                   see '^f32\[32×32\] cpu  mean .*std .*min .*max .*finite'; see 'of 32 rows; w:show\(rows\)'; enter 'w:slice(1, 20)'; see 'of 20 rows; \(value\):show\(rows\)'
enter 'w:histogram()';                       see '^ -0\..* [▁▂▃▄▅▆▇█ ]+ 0\.'
enter 'model:layer(99)';                     see 'E_SHAPE  model:layer\(99\): this model has layers 1..2'
enter 'for name, p in model.params do'
enter 'if p.grad:norm() > 0 then print(name, #p.shape) end'
enter 'end';                                 see '^model.norm.weight	? *1'
enter 'type(model:generate("class ", { max_tokens = 8, temperature = 0.8 }))'; see '^"string"$'
enter 'opt:set_lr(3e-4)';                    see 'opt:set_lr: opt is read-only'; see 'use cmd.set_lr\(3e-4\)'
enter 'cmd.set_lr(3e-4); trainer:step(2)';    see '^  set_lr\(0.0003\) by repl$'
see '^  22/60 ba  .*lr 3e-4 \(schedule: [0-9.e-]+; pinned by repl, cmd.set_lr\(nil\) releases\)'
enter 'cmd.save("here"); trainer:step(1)';   see '^  23/60 ba .*pinned by repl'
committed 22
enter 'ckpt:load("here")';                   see 'resumed from step 22'; see 'step = 22'
enter 'cmd.set_lr(nil); trainer:step(1)';    see '^  23/60 ba  loss [0-9.]+  lr [0-9.e-]+  grad'
enter ':prof trainer:step(1)';               see '1 x  ProfilerStep#24'; see '^  trace: .*/rank0.steps-24-24.pt.trace.json'
enter 'while true do end'; sleep 0.5; tm send-keys C-c; see '\^C interrupted at stdin:[0-9]+'
enter 'trainer:step(1000000)'; see '60/60 ba'
enter ';echo from the shell';                see '^from the shell'
enter ':why optimizer.lr';                   see '^recipe +0.0006 +tiny.lua:5'
see '^command +0.0003 +repl, step 20 \(pin\)'; see '^command +as before +repl, step 22 \(released\)'
enter 'plot "loss"';                         see '^ *loss'
enter 'local kept = w:keep()';               enter ':who'; see 'kept +tensor'
enter 'kept:mean() == w:mean()';             see '^true'
enter 'trainer:save()';                      see 'checkpoints/step-0*60\.'
complete 'r.optim' '^> r.optimizer'; see '\^C$'
complete 'trainer:ev' '^> trainer:eval'
complete 'cmd.set_w' '^> cmd.set_weight_decay'
complete 'model:find "model.embed_t' 'find "model.embed_tokens.weight'
complete 'r.precision = "b' 'r.precision = "bf16'
enter 'model.n_params';                      see '^[0-9]+$'
ready; tm send-keys C-d; see 'a run is open at step 60'
ready; tm send-keys C-d; see '^bash-.*[#$] *$'
enter "$tycho repl"; see '^tycho .*[?]help' 2
ready; tm send-keys C-p; see '^> model.n_params' 2; tm send-keys C-c
enter 'model.n_params';                      see 'there is no model yet'
enter ':quit'; enter 'echo "left with $?"';  see '^left with 0'
enter "$tycho run tiny.lua run_name=bad optimizer.lr=1e30 clip.norm=0 --on-error repl"
see 'training has diverged'
enter 'trainer.state.step > 0';              see '^true' 2
enter 'trainer:close()'; ready; tm send-keys C-d; see '^bash-.*[#$] *$'; enter 'echo "left with $?"'; see '^left with 14'
enter "$tycho run failing.lua --on-error repl"; see 'failing.lua:6: boom at 2'; see ':bt  :frame N  :locals  ctx'
enter ':bt';                                 see '^> 1  .*failing.lua:6'
enter ':frame 1';                            see '6 \|   if ctx.step == 4 then'; see '^  half = 2$'; see '^  st = \{ seen = 4 \}'
enter 'locals.st.seen + 10';                 see '^14$'
enter 'ctx.step * 100 + ctx.model.n_layers'; see '^402$'
enter ':frame 7';                            see 'there is no such frame'
enter 'trainer:close()'; ready; tm send-keys C-d; see '^bash-.*[#$] *$'; enter 'echo "left with $?"'; see '^left with 10'
enter "$tycho launch -n 2 repl tiny.lua run_name=two"; see 'rank 0/2 '; see '^recipe tiny .* not built yet' 2
enter '@1 y = 1'; enter 'while true do end'; sleep 0.5; tm send-keys C-c; see '\^C interrupted at stdin:2'
enter '@1 while true do end'; sleep 0.5; tm send-keys C-c; see '\^C interrupted at stdin:3'
ready; tm send-keys C-c; tm send-keys C-c
enter 'y';                                   see 'undeclared name  y'
enter 'y = 1; y';                            see '^1$'
enter 'trainer = build(r); trainer:step(3)'; see '^  3/60 ba  loss '
enter ':quit'; see 'a run is open at step 3'; enter ':quit'; see '^bash-.*[#$] *$'; enter 'echo "left with $?"'; see '^left with 0' 2
sed 's/if ctx.step/if ctx.dist.rank == 1 and ctx.step/; s/t.control/t.everywhere/' failing.lua >odd.lua
enter "$tycho launch -n 2 run odd.lua run_name=odd --on-error repl"; see 'rank 1, batch_end of "boom": .*odd.lua:6: boom at 2'
enter ':bt';                                 see 'or on another rank:  @1 :bt'
enter '@1 :frame 1';                         see '6 \|   if ctx.dist.rank == 1 and ctx.step == 4'
enter '@1 locals.st.seen + 20';              see '^24$'
enter 'trainer:step(2)';                     see '^  6/60 ba'
enter 'trainer:close()'; ready; tm send-keys C-d; see '^bash-.*[#$] *$'; enter 'echo "left with $?"'; see '^left with 10' 2
# t.debug() on rank 0 of two: rank 1 says that it waits.
sed 's/error("boom at " .. half)/t.debug()/' failing.lua >look.lua
enter "$tycho launch -n 2 run look.lua run_name=look --plain"
see '^t.debug\(\) at look.lua:6; the run waits, for at most 20 minutes. Names: ctx half st t.'
see 'rank 1 waits for rank 0, which is at a prompt of t.debug\(\) after step 4'
type_here() { tm send-keys -l -- "$1"; tm send-keys Enter; }
type_here 'half * 1000';                     see '^2000$'
type_here 'haff';                            see 'undeclared name  haff; did you mean  half\?'
type_here 'cmd.save "looked"';               type_here 'continue'; see '^the run continues after look.lua:6'
see 'done, 60 steps';                        enter 'ls runs/look/checkpoints'; see 'looked'
echo "$passed passed, 0 failed" | tee "$TYCHO_RESULT"
