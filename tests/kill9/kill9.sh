#!/bin/bash
# Kills a command with SIGKILL at random moments, again and again, and checks after each kill what it left.
#   kill9.sh TRIALS MIN_MS MAX_MS START CHECK
# START and CHECK are shell commands; START runs in a process group of its own, which is killed as a whole. CHECK must
# exit with 0. START should not end by itself before it is killed, unless it ends with 0.
# Job control gives every job its group, and a job that has ended is not killed: its number may be another process's by
# then.
set -um
[ $# -eq 5 ] || { sed -n '2,5p' "$0"; exit 2; }
trials=$1 min_ms=$2 max_ms=$3 start=$4 check=$5
killed=0
for ((trial = 1; trial <= trials; ++trial)); do
  delay_ms=$((min_ms + (RANDOM * 32768 + RANDOM) % (max_ms - min_ms + 1)))
  bash -c "exec $start" &
  pid=$!
  sleep "$((delay_ms / 1000)).$(printf %03d $((delay_ms % 1000)))"
  kill -9 %% 2>/dev/null && killed=$((killed + 1))
  wait "$pid" 2>/dev/null
  status=$?
  if [ $status -ne 137 ] && [ $status -ne 0 ]; then
    echo "kill9: trial $trial: the command failed by itself with status $status: $start"
    exit 1
  fi
  if ! bash -c "$check"; then
    echo "kill9: trial $trial: killed after $delay_ms ms, and the check failed: $check"
    exit 1
  fi
done
echo "kill9: $killed of $trials trials were killed, every check passed"
