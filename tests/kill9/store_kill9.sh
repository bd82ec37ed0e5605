#!/bin/bash
# Runs whose checkpoints go to a store (stand-ins for S3 and Azure) die by kill -9 at many of their requests. Nothing that was committed
# there may be lost; the end equals that of an undisturbed run bit for bit, with the disk kept or emptied, and on another mesh at each
# start; a second run is refused.
#   store_kill9.sh [s3|azure ...]
# With TYCHO_KILL_EVERY=1 a shorter run of one rank dies instead at each of its requests in turn, before and after it, each time on a place
# of its own; the next start, every second time without the disk, goes on to the end. TYCHO_KILL_EVERY=before or after makes one half of
# them, TYCHO_KILL_FIRST=N begins with request N.
set -euo pipefail
# shellcheck source=tests/host/store_peer.sh
source "$(dirname "$0")/../host/store_peer.sh"
export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret-of-the-test
write_recipe 32 2 64 24 4
kinds=("$@")
((${#kinds[@]})) || kinds=(s3 azure)
die() { echo "store_kill9: $*"; tail -20 run.log; exit 1; }

# RANKS NAME...: a run whose number of ranks and name are these.
train() {
  local ranks=$1 launch=()
  shift
  ((ranks == 1)) || launch=(launch -n "$ranks")
  exec tycho "${launch[@]}" run far.lua threads=1 "parallel.dp_shard=$ranks" "$@" --force >run.log 2>&1
}
for ranks in 1 2; do (train "$ranks" "run_dir=$scratch/wanted-$ranks") || die "the undisturbed run of $ranks"; done

canonical=(parallel.reduce=canonical micro_batch=1sp)
(train 1 "run_dir=$scratch/wanted-canonical" "${canonical[@]}") || die "the undisturbed run whose bits do not depend on ranks"
meshes=('2 parallel.dp_shard=2' '1' '2 parallel.dp_shard=1 parallel.dp_replicate=2' '4 parallel.dp_shard=2 parallel.dp_replicate=2')

lives=0 dead=0
# KIND AFTER WHEN RANKS NAME...: a run that is killed before or after one of its requests, if it makes so many.
killed_run() {
  local kind=$1 after=$2 when=$3 ranks=$4 pid status=0
  shift 3
  (train "$@") &
  pid=$!
  if ((ranks == 1)); then echo "$pid" >"$kind/victim"; else echo "$pid children" >"$kind/victim"; fi
  rm -f "$kind/killed"
  echo "$after $when" >"$kind/kill_after"
  wait "$pid" || status=$?
  lives=$((lives + 1))
  if [[ -e $kind/killed ]]; then
    dead=$((dead + 1))
    ((status)) || [[ $ranks != 1 ]] || die "a killed run ended with 0"
  elif ((status)); then
    die "$kind, $ranks ranks: ended with $status without a kill"
  fi
  rm -f "$kind/kill_after"
}
# KIND PLACE WANTED: the last checkpoint of the place is whole, and has the tensors and the state of a run.
same_bits() {
  tycho ckpt verify "$2" >verify.log 2>&1 || { cat verify.log; die "$1: a checkpoint of $2 is damaged"; }
  rm -rf far near
  tycho ckpt get "$2" far >verify.log 2>&1 || { cat verify.log; die "$1: $2 cannot be read"; }
  tycho ckpt reshard "$3" --out near >verify.log 2>&1 || { cat verify.log; die "$1: $3 cannot be read"; }
  tycho ckpt diff far near >diff.log || true # the recipes differ in their folders
  grep -q '^[1-9][0-9]* tensors are equal, 0 differ' diff.log && ! grep -q '^train_state' diff.log || { cat diff.log; die "$1, $2: other bits"; }
}
# KIND PLACE: dies at each request.
at_every_request() {
  local kind=$1 place=$2 when after short=(max_duration=4ba ckpt.every=2ba ckpt.keep=1)
  rm -rf wanted-short
  (train 1 "run_dir=$scratch/wanted-short" "${short[@]}") || die "the undisturbed short run"
  for when in before after; do
    [[ $TYCHO_KILL_EVERY == 1 || $TYCHO_KILL_EVERY == "$when" ]] || continue
    for ((after = ${TYCHO_KILL_FIRST:-0}; ; after++)); do
      rm -rf run
      killed_run "$kind" "$after" "$when" 1 "run_dir=$scratch/run" "ckpt.remote=$place/$when-$after" "${short[@]}"
      [[ -e $kind/killed ]] || break
      ((after % 2)) || rm -rf run
      (train 1 "run_dir=$scratch/run" "ckpt.remote=$place/$when-$after" "${short[@]}") || die "$kind: the start after a kill $when request $after"
      same_bits "$kind" "$place/$when-$after" wanted-short
      echo "$kind: died $when request $after"
    done
    echo "$kind: died $when each of the requests ${TYCHO_KILL_FIRST:-0} to $((after - 1)), lost nothing"
  done
}
for kind in "${kinds[@]}"; do
  mkdir "$kind"
  coproc server { serve_store "$kind" "$kind"; }
  # shellcheck disable=SC2034  # used below
  to_server=${server[1]}
  read -r -u "${server[0]}" url
  if [[ $kind == s3 ]]; then export S3_ENDPOINT_URL=$url place=s3://bucket/runs; else export AZURE_STORAGE_SERVICE_ENDPOINT=$url/account place=az://account/container/runs; fi
  if [[ -n ${TYCHO_KILL_EVERY:-} ]]; then
    at_every_request "$kind" "$place"
    ! grep '^501' "$kind/requests" || die "an unknown request"
    exec {to_server}>&-
    wait
    continue
  fi
  for ranks in 1 2; do
    run=("$ranks" "run_dir=$scratch/run" "ckpt.remote=$place/$ranks")
    number=0
    for after in 0 1 2 4 7 11 16 22 29 37; do
      number=$((number + 1))
      ((number % 3)) || rm -rf run # the machine is lost with its disk
      when=before
      ((number % 2)) || when=after
      killed_run "$kind" "$after" "$when" "${run[@]}"
    done
    rm -rf run
    (train "${run[@]}") || die "$kind, $ranks ranks: the last start"
    same_bits "$kind" "$place/$ranks" "wanted-$ranks"
  done
  # A new machine and another mesh at each start.
  number=0
  for after in 9 14 19 24 30 36; do
    rm -rf run
    read -r -a mesh <<<"${meshes[number % ${#meshes[@]}]}"
    killed_run "$kind" "$after" before "${mesh[0]}" "run_dir=$scratch/run" "ckpt.remote=$place/meshes" "${canonical[@]}" "${mesh[@]:1}"
    number=$((number + 1))
  done
  rm -rf run
  (train 1 "run_dir=$scratch/run" "ckpt.remote=$place/meshes" "${canonical[@]}") || die "$kind: the last start of the changing meshes"
  same_bits "$kind" "$place/meshes" wanted-canonical
  # Another mesh goes on from the place, and a second run on it is refused while the first one lives.
  rm -rf run
  (train 2 "run_dir=$scratch/run" "ckpt.remote=$place/1" max_duration=100000ba) &
  pid=$!
  for _ in $(seq 600); do grep -q '"kind":"upload"\|"kind": "upload"' run/events.jsonl 2>/dev/null && break; sleep 0.1; done
  status=0
  tycho run far.lua "run_dir=$scratch/second" "ckpt.remote=$place/1" >second.log 2>&1 || status=$?
  ((status == 13)) || { cat second.log; die "$kind: a second run ended with $status"; }
  kill -TERM "$pid" 2>/dev/null || true # SIGINT may be ignored in the background
  wait "$pid" || true
  ! grep -q '^501' "$kind/requests" || { grep '^501' "$kind/requests"; die "an unknown request"; }
  ! grep -rqE 'secret-of-the-test|sas-of-the-test' run second wanted-1 run.log second.log || die "a secret is shown"
  exec {to_server}>&-
  wait
done
((dead * 2 >= lives)) || die "only $dead of $lives runs were killed"
rm -rf "$scratch"
echo "$dead of $lives runs were killed, and nothing was lost" | tee "${TYCHO_RESULT:-/dev/null}"
