#!/usr/bin/env bash
# srun --pty tycho repl: a prompt over two ranks, on one node and on two, in a terminal (tmux).
set -euo pipefail
command -v tmux >/dev/null || { echo "skipped: there is no tmux"; exit 77; }
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 2
tm() { tmux -L "tycho-slurm-$$" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; "$cluster" down "$scratch/slurm"; rm -rf "$scratch"' EXIT
tm new-session -d -x 110 -y 40 "env LANG=C.UTF-8 XDG_STATE_HOME=$scratch/state PS1='\$ ' bash --norc --noprofile" 2>/dev/null ||
  { echo "skipped: tmux finds no pseudo terminal"; exit 77; }
screen() { tm capture-pane -p -S - -J; }
shows() { screen | grep -qE -- "$1"; }
# The newest line is an empty prompt: keys that come before readline listens are the terminal's.
is_ready() { screen | grep -v '^$' | tail -1 | grep -qE '^(>|\$) *$'; }
enter() {
  wait_until 60 is_ready || screen
  tm send-keys -l -- "$1"
  tm send-keys Enter
}
# appears PATTERN: within a minute the screen has such a line; otherwise prints the screen.
appears() { wait_until 60 shows "$1" || { screen; return 1; }; }
# sees NAME PATTERN: a check that the pattern appears.
sees() { check "$1" 0 "" appears "$2"; }
for nodes in 1 2; do
  # Several nodes need a secret that all ranks know: there is no run folder yet in which rank 0 could leave one.
  enter "clear; TYCHO_TOKEN=0123456789abcdef srun -N$nodes -n2 --pty tycho repl tiny.lua run_dir=prompt$nodes"
  sees "a prompt on $nodes nodes" 'rank 0/2'
  enter 'run = build()'
  enter 'trainer:step(2)'
  sees "it trains" '2/12 ba'
  enter '@1 y = 2'
  enter '@0 y = 1'
  enter 'y'
  sees "an entry runs on both ranks, and values may differ" '^≠ rank 1: 2'
  enter 'trainer:save(); trainer:close()'
  wait_until 60 is_ready || screen
  tm send-keys C-d
  sees "and ends" '^\$ *$'
  check "with a checkpoint" 0 "2" tycho ckpt ls prompt$nodes
done
enter 'clear; srun -N2 -n2 --pty tycho repl tiny.lua'
sees "without the secret it says what to set" 'Set TYCHO_TOKEN in the environment of all ranks'
finish
