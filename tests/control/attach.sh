#!/usr/bin/env bash
# A running run under ctl and attach: lines are answered between steps, commands act and are written down, a callback that
# does not end is ended by Ctrl-C, and the run that goes on has the same rate.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
tycho=${TYCHO_BUILD:-$root/build/cpu}/bin/tycho
work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
fail() { echo "attach: $1"; cat run.log; exit 1; }
expect() { [[ $2 == *"$1"* ]] || fail "wanted \"$1\", got \"$2\""; }
wait_for() { for ((i = 0; i < 600; ++i)); do if "$@"; then return; fi; sleep 0.1; done; fail "waited for $*"; }

PATH=$(dirname "$tycho"):$PATH "$root/tests/make_tiny_data" 64
start() { "$tycho" run "$root/tests/kill9/tiny.lua" run_dir=run threads=1 max_duration=1000000ba log.every=1000ba "$@" >run.log 2>&1 & pid=$!; }

start
wait_for test -S run/control.sock
[[ $(stat -c %a run/control.sock) == 600 ]] || fail "the socket is open to others"
expect "set_lr(0.001) after step" "$("$tycho" ctl run set lr=1e-3)"
expect "0.001" "$("$tycho" attach run -e 'opt.lr')"
expect 'set_optimizer("eps", 1e-06) after step' "$("$tycho" ctl run set optimizer.eps=1e-6)"
expect "1e-06" "$("$tycho" attach run -e 'opt.eps')"
expect 'did you mean "eps"?' "$("$tycho" ctl run set optimizer.esp=1e-6 2>&1 || true)"
expect 'set_optimizer("eps") after step' "$("$tycho" ctl run set optimizer.eps=)"
# What the boundary refuses is an error of the line, beside what took effect.
status=0
"$tycho" attach run --control -e 'cmd.set_lr(1e-3) cmd.disable "nope"' >line.log || status=$?
[[ $status == 10 ]] || fail "a command that has no effect ended attach with $status"
expect "set_lr(0.001) after step" "$(cat line.log)"
expect 'disable("nope") has no effect: [cmd] no callback' "$(cat line.log)"
expect "tycho attach RUN --control" "$("$tycho" attach run -e 'cmd.stop()' || true)"
expect "ctl:1: undeclared name  losss" "$("$tycho" attach run -e 'losss' || true)"
expect "undeclared name  modle; did you mean  model?" "$("$tycho" attach run -e 'modle.params' || true)"
expect "os is not available" "$("$tycho" attach run -e 'os.time()' || true)"
status=0
"$tycho" attach run -e losss >line.log || status=$?
[[ $status == 10 ]] || fail "an undeclared name ended attach with $status"
# What an entry prints comes back to who typed it, before its value, and before an error.
[[ $("$tycho" attach run -e 'print("seen", 1) return 0.1 + 0.2') == $'seen\t1\n0.30000000000000004' ]] || fail "print"
expect $'before\nctl:1: after' "$("$tycho" attach run -e 'print "before" error "after"' || true)"
if grep -q -e seen -e before run.log; then fail "print reached the terminal of the run"; fi
# Every -e is answered in order, up to the first that fails; names stay, and an entry may have several lines.
[[ $("$tycho" attach run -e '1' -e 'local twice = 2' -e 'twice * 4') == $'1\n8' ]] || fail "two entries"
[[ $("$tycho" attach run -e '"a"' -e 'nope' -e '"b"' || true) != *'"b"'* ]] || fail "went on after an error"
[[ $(printf 'local sum = 0\nfor i = 1, 3 do\n  sum = sum + i\nend\n\nsum\n' | "$tycho" attach run) == 6 ]] || fail "entries of several lines"
expect "ends inside an entry" "$(printf 'for i = 1, 3 do\n' | "$tycho" attach run 2>&1 || true)"
expect "f32[" "$("$tycho" attach run -e 'model:find "embed"')"
# Help is answered here.
expect "ctx.loss" "$("$tycho" attach run -e '?')"
expect "Mean over the valid tokens" "$("$tycho" attach run -e '?ctx.loss')"
expect "generate(prompt: string" "$("$tycho" attach run -e '?model')"
expect "generate(prompt: string" "$("$tycho" attach run -e '?ctx.model:generate')"
expect "Peak learning rate" "$("$tycho" attach run -e '?optimizer.lr')"
expect "Commands, which every rank" "$("$tycho" attach run --control -e '?ctx.cmd')"
expect "tycho repl" "$("$tycho" attach run -e ':plan' || true)"
expect "no no_such_name" "$(printf 'ctx.no_such_name\n' | "$tycho" attach run || true)"
"$tycho" ctl run pause >/dev/null
before=$("$tycho" attach run -e ctx.step)
after=$("$tycho" attach run -e ctx.step)
[[ $before == "$after" ]] || fail "a paused run went from step $before to $after"
expect 'save("here")' "$("$tycho" ctl run save here)"
mkdir run/ctl
echo 'ctx.step' >run/ctl/001.lua
wait_for test -e run/ctl/001.out
expect "$after" "$(cat run/ctl/001.out)"
# No line can crash the run: not by the C stack, not by bytecode, not by memory.
expect "nested too deep" "$("$tycho" attach run -e 'local function f() return coroutine.wrap(f)() end f()' || true)"
printf '\033LJ\002\n' >run/ctl/002.lua
wait_for test -e run/ctl/002.out
expect "this is Lua bytecode" "$(cat run/ctl/002.out)"
expect "Lua uses more than 256 MiB here" "$("$tycho" attach run -e 'kept = {} for i = 1, 1000 do kept[i] = (i .. "x"):rep(2^20) end' || true)"
expect "$after" "$("$tycho" attach run -e ctx.step)"
"$tycho" ctl run resume >/dev/null
# Skipping does not read what it skips.
expect "skip_batches(1000000000000) after step" "$("$tycho" attach run --control -e 'cmd.skip_batches(1e12)')"
before=$("$tycho" attach run -e ctx.step)
wait_for eval "[[ \$(\"$tycho\" attach run -e ctx.step) -gt $((before + 1)) ]]"
[[ $("$tycho" attach run -e 'data.epoch > 1e6') == true ]] || fail "nothing was skipped"
"$tycho" ctl run stop 'seen enough' >/dev/null
wait "$pid" || fail "the run failed"
pid=
expect "seen enough" "$("$tycho" ctl run tail)"
grep -q '"command":{"name":"set_lr"' run/events.jsonl || fail "the command is not written down"
if "$tycho" ctl run stop 2>error.log; then fail "a run that ended was stopped"; fi
expect "nothing runs in run" "$(cat error.log)"

# A line without an end is ended; the run goes on, and SIGTERM reaches it while another such line runs.
start
wait_for test -S run/control.sock
expect "stopped after" "$(timeout 200 "$tycho" attach run -e 'while true do end' || true)"
before=$("$tycho" attach run -e ctx.step)
wait_for eval "[[ \$(\"$tycho\" attach run -e ctx.step) -gt $before ]]"
timeout 200 "$tycho" attach run -e 'while true do pcall(function() while true do end end) end' >line.log 2>&1 & line=$!
stands() { local newest; newest=$(cat run/checkpoints/latest); sleep 2; [[ $(cat run/checkpoints/latest) == "$newest" ]]; }
wait_for stands
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
pid=
[[ $status == 143 || $status == 0 ]] || fail "SIGTERM ended with $status"
wait "$line" || true
expect "interrupted at ctl:1" "$(cat line.log)"

cat >endless.lua <<'LUA'
local r = require("tiny"):extend "endless"
r.callbacks.endless = require("tycho").observe {
  fit_start = function(ctx) if ctx.step > 0 then print "it loops" while true do end end end, time_limit = "1h" }
return r
LUA
cp "$root/tests/kill9/tiny.lua" tiny.lua
# Shells have programs in the background ignore SIGINT.
env --default-signal=INT "$tycho" run endless.lua run_dir=run threads=1 max_duration=1000000ba log.every=1000ba >run.log 2>&1 & pid=$!
wait_for grep -q "it loops" run.log
kill -INT "$pid"
status=0
wait "$pid" || status=$?
pid=
[[ $status == 130 ]] || fail "Ctrl-C ended with $status"
expect "interrupted at endless.lua" "$(cat run.log)"
echo "attach: every line was answered"
