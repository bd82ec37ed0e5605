#!/usr/bin/env bash
# containers/launch.sb with a stand-in for srun that runs one task here, without a container: the lines of LLM Foundry's
# walk-through on Slurm give plans with their numbers, and what is wrong is said before anything starts.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
mkdir -p bin
ln -s "$root/containers/tycho-job" bin/tycho-job
export PATH=$scratch/bin:${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH TYCHO_RECIPES=$root/recipes
# Where the walk-through's paths are, in place of /.
disk=$scratch/disk
for folder in data/my-copy-c4-full data/paedwar/my-copy-c4-full blob_data_auto/paedwar/data/my-copy-c4-full \
  lustre-fs-480/paedwar/data/my-copy-c4-full blob_data_read/paedwar/data/my-copy-c4-full; do
  mkdir -p "$disk/$folder/train" "$disk/$folder/val"
  touch "$disk/$folder/train/index.json" "$disk/$folder/val/index.json"
done
mkdir -p "$disk/blob_data" "$disk/blob_data_filecache" "$disk/mnt/nvme"
touch "$disk/data/llm-foundry-v0.18.0.sqsh" "$disk/data/paedwar/llm-foundry-v0.18.0.sqsh"

# srun: its options and the variables of the script go to a file; the command after them runs as one task.
cat >bin/srun <<'SRUN'
#!/bin/bash
options=()
while [[ $1 == -* ]]; do options+=("$1"); shift; done
printf '%s\n' "${options[*]}" >>"$FAKE_LOG/srun"
env | grep -E '^(NCCL_|SHARP_)' | sort >"$FAKE_LOG/environment" || true
unset SLURM_NTASKS SLURM_JOB_NUM_NODES
"$@"
SRUN
# tycho: a run is not started, but its command resolved; plan is the real one.
cat >bin/tycho <<'TYCHO'
#!/bin/bash
real=${TYCHO_BUILD:?}/bin/tycho
if [[ $1 != run ]]; then exec "$real" "$@"; fi
printf '%s\n' "$@" >"$FAKE_LOG/run"
"$real" run "${@:2}" --print-only || exit
exit "${FAKE_STATUS:-0}"
TYCHO
cat >bin/scontrol <<'SCONTROL'
#!/bin/bash
if [[ $1 == show ]]; then echo "JobState=${FAKE_STATE:-RUNNING} Reason=None"; else echo "$@" >>"$FAKE_LOG/scontrol"; fi
SCONTROL
chmod +x bin/*
export FAKE_LOG=$scratch/log TYCHO_BUILD=${TYCHO_BUILD:-$root/build/cpu}
mkdir -p "$FAKE_LOG" job
cd job

# job NODES "LINE": runs the script as sbatch -N NODES would; paths of the line are on the test's disk.
job() {
  rm -f "$FAKE_LOG"/*
  local words
  eval "words=($(sed -E "s#(^|[ :,])/#\1$disk/#g" <<<"$2"))"
  SLURM_JOB_ID=42 SLURM_JOB_NUM_NODES=$1 SLURM_NTASKS=$(($1 * 8)) SLURM_NTASKS_PER_NODE=8 \
    timeout 60 bash "$root/containers/launch.sb" "${words[@]}"
}

# ---- the walk-through's lines ----
example_1='-c mpt-30b -i /data/llm-foundry-v0.18.0.sqsh -d /data/my-copy-c4-full -s -I 10 -N 5 -F /data/checkpoints -S -m /data:/data'
example_2='-c mpt-30b -i /data/llm-foundry-v0.18.0.sqsh -d /data/paedwar/my-copy-c4-full -s -I 100 -N 5 -F /mnt/nvme/paedwar/checkpoints -S -m /data:/data'
check "the first example" 0 "in 128 ranks" job 16 "$example_1"
check "its run has the interval, the count and the folder" 0 "run_dir=$disk/data/checkpoints/{run_name}
ckpt.every=10ba
ckpt.keep=5
ckpt.state=sharded" cat "$FAKE_LOG/run"
check "one node plans, then all train" 0 "--nodes=1 --ntasks=1 --container-image=$disk/data/llm-foundry-v0.18.0.sqsh" cat "$FAKE_LOG/srun"
check "the container sees the mounts and the job's folder" 0 \
  "--container-mounts=$disk/data:$disk/data,$PWD:$PWD --container-workdir=$PWD" cat "$FAKE_LOG/srun"
check "the second example" 0 "under no mount: checkpoints stay inside the container" job 32 "$example_2"

image='-i /data/paedwar/llm-foundry-v0.18.0.sqsh'
lustre='-d /lustre-fs-480/paedwar/data/my-copy-c4-full'
auto='-m /data:/data,/lustre-fs-480:/lustre-fs-480,/blob_data_auto:/blob_data_auto'
read_='-m /data:/data,/lustre-fs-480:/lustre-fs-480,/blob_data_read:/blob_data_read'
reading='-I 100 -N 5 -F /mnt/nvme/paedwar/checkpoints-32n -S'
saving() { echo "-s -I 1 -N 6 -F $1/paedwar/checkpoints/\$(uuidgen) -S"; }
uuidgen() { cat /proc/sys/kernel/random/uuid; }
# Two models a line, as the walk-through measured them: six pairs of data and checkpoint folders, and two of blobfuse's caches.
lines=(
  "$image -d /blob_data_auto/paedwar/data/my-copy-c4-full $reading $auto -y max_duration=100ba"
  "$image $lustre $reading $auto -y max_duration=100ba"
  "$image -d /blob_data_read/paedwar/data/my-copy-c4-full $reading $read_ -y max_duration=100ba"
  "$image $lustre $(saving /mnt/nvme) $auto -y max_duration=11ba"
  "$image $lustre $(saving /blob_data_auto) $auto -y max_duration=11ba"
  "$image $lustre $(saving /lustre-fs-480) $auto -y max_duration=11ba"
  "$image $lustre $(saving /mnt/nvme) $auto,/mnt/nvme:/mnt/nvme -y max_duration=11ba"
  "$image $lustre $(saving /blob_data) -m /data:/data,/lustre-fs-480:/lustre-fs-480,/blob_data:/blob_data -y max_duration=11ba"
  "$image $lustre $(saving /blob_data_filecache) -m /data:/data,/lustre-fs-480:/lustre-fs-480,/blob_data_filecache:/blob_data_filecache -y max_duration=11ba"
)
for line in "${lines[@]}"; do
  check "30b $line" 0 "29,975,214,080" job 32 "-c mpt-30b $line"
  check "70b $line" 0 "64,862,437,376" job 32 "-c mpt-70b $line"
  case $line in
    *max_duration=100ba) check "it does not save in between" 0 "max_duration=100ba" grep -A9 -x "ckpt.every=1dur" "$FAKE_LOG/run" ;;
    *) check "it saves at every step" 0 "ckpt.keep=6" grep -A9 -x "ckpt.every=1ba" "$FAKE_LOG/run" ;;
  esac
done

# ---- other arguments ----
usual="$image $lustre $auto"
check "SHARP" 0 "" job 2 "-c mpt-125m $usual -u 1"
check "is in the environment of the ranks" 0 "NCCL_COLLNET_ENABLE=1
SHARP_COLL_ENABLE_SAT=1" cat "$FAKE_LOG/environment"
check "without SHARP" 0 "" job 2 "-c mpt-125m $usual"
check "nothing is set" 1 "" grep -q COLLNET "$FAKE_LOG/environment"
check "defaults of -s" 0 "ckpt.every = \"1000ba\"" job 2 "-c mpt-125m $usual -s -F /lustre-fs-480/x"
check "and one checkpoint" 0 "ckpt.keep=1" cat "$FAKE_LOG/run"
check "updates with LLM Foundry's names" 0 "optimizer.lr = 0.0003" \
  job 2 "-c mpt-125m $usual -y 'max_duration=7ba optimizer.lr=3e-4 global_train_batch_size=512 fsdp_config.state_dict_type=sharded'"
check "become Tycho's" 0 "global_batch=512sp
ckpt.state=sharded" cat "$FAKE_LOG/run"
cp "$root/recipes/llama-8b.lua" mine.lua
check "a recipe by its path" 0 "llama-8b" job 16 "-c ./mine.lua $usual -y global_batch=128sp"
cat >tiny.yaml <<'YAML'
variables: {data_local: ./nowhere}
max_seq_len: 128
model: {name: mpt_causal_lm, d_model: 64, n_heads: 2, n_layers: 2, max_seq_len: 128, vocab_size: 512}
train_loader: {name: text, dataset: {local: "${variables.data_local}", split: train}}
optimizer: {name: decoupled_adamw, lr: 6.0e-4}
scheduler: {name: cosine_with_warmup, t_warmup: 10ba, alpha_f: 0.1}
max_duration: 100ba
global_train_batch_size: 64
device_train_microbatch_size: 4
YAML
check "a YAML, with its own keys as updates" 0 "max_duration = \"50ba\"" job 2 "-c tiny.yaml $usual -y max_duration=50ba"
check "its data is that of -d" 0 "variables.data_local=$disk/lustre-fs-480/paedwar/data/my-copy-c4-full" cat "$FAKE_LOG/run"
check "without a container" 0 "125,311,488" job 1 "-c mpt-125m -i none $lustre"
SLURM_CPUS_ON_NODE=8 check "a CPU for each rank" 0 "Slurm gave this job 8 CPUs of $(hostname -s) for 8 ranks; --cpus-per-task=12 asks for more" \
  job 2 "-c mpt-125m $usual"
check "CPUs enough are not worth a note" 1 "" grep "Slurm gave" <(SLURM_CPUS_ON_NODE=96 job 2 "-c mpt-125m $usual" 2>&1)
check "a dry run prints the commands" 0 "tycho-job --plan 16 -d" job 2 "-c mpt-125m $usual --dry-run"
check "and starts nothing" 1 "" test -e "$FAKE_LOG/srun"

# ---- how it ends ----
FAKE_STATUS=143 check "a run that stopped with a checkpoint" 143 "" job 2 "-c mpt-125m $usual"
check "goes back into the queue" 0 "requeue 42" cat "$FAKE_LOG/scontrol"
FAKE_STATUS=12 check "a run that failed" 12 "" job 2 "-c mpt-125m $usual"
check "does not" 1 "" test -e "$FAKE_LOG/scontrol"
FAKE_STATUS=143 FAKE_STATE=COMPLETING check "nor one that was cancelled" 143 "" job 2 "-c mpt-125m $usual"
check "although it saved" 1 "" test -e "$FAKE_LOG/scontrol"
FAKE_STATUS=143 SLURM_RESTART_COUNT=20 check "nor one that was restarted too often" 143 "restarted 20 times already" job 2 "-c mpt-125m $usual"
check "it stays out of the queue" 1 "" test -e "$FAKE_LOG/scontrol"

# ---- what is wrong ----
check "an unknown option" 2 "unknown option -x" job 2 "-c mpt-125m $usual -x"
check "no recipe" 2 "-c is missing" job 2 "$usual"
check "no image" 2 "-i is missing" job 2 "-c mpt-125m $lustre $auto"
check "an image that is not there" 2 "there is no image $disk/data/none.sqsh" job 2 "-c mpt-125m -i /data/none.sqsh $lustre $auto"
check "no data" 2 "-d is missing" job 2 "-c mpt-125m $image $auto"
check "no mounts" 2 "-m is missing" job 2 "-c mpt-125m $image $lustre"
check "a mount without a colon" 2 "got \"$disk/data\"; /data becomes /data:/data" job 2 "-c mpt-125m $image $lustre -m /data"
check "a mount that is not there" 2 "this node has no $disk/nowhere" job 2 "-c mpt-125m $image $lustre -m /nowhere:/nowhere"
check "data outside of the mounts" 2 "is under no mount" job 2 "-c mpt-125m $image $lustre -m /data:/data"
check "data that is not there" 2 "there is no folder $disk/data/nothing" job 2 "-c mpt-125m $image -d /data/nothing $auto"
check "-s without -F" 2 "-s needs -F" job 2 "-c mpt-125m $usual -s"
check "an interval that is no number" 2 "-I expected a number of steps, got \"often\"" job 2 "-c mpt-125m $usual -s -F /data -I often"
check "a count that is no number" 2 "-N expected a number" job 2 "-c mpt-125m $usual -s -F /data -N all"
check "SHARP that is neither 0 nor 1" 2 "-u expected 0 or 1, got \"yes\"" job 2 "-c mpt-125m $usual -u yes"
check "an update without a value" 2 "-y expected key=value, got \"fast\"" job 2 "-c mpt-125m $usual -y 'max_duration=1ba fast'"
check "nothing was started by any of these" 1 "" test -e "$FAKE_LOG/srun"
check "a name that is no recipe" 2 "no shipped recipe \"mpt-31b\"; shipped are: " job 2 "-c mpt-31b $usual"
check "says which there are" 2 " mpt-30b " job 2 "-c mpt-31b $usual"
check "a key that is none: the plan says so once" 10 "unknown key  optimizer.lrr" job 2 "-c mpt-125m $usual -y optimizer.lrr=1"
check "and no rank starts" 1 "" test -e "$FAKE_LOG/run"
check "a batch that the ranks cannot share" 11 "cannot be divided evenly" job 3 "-c mpt-125m $usual -y global_batch=100sp"
mkdir -p "$disk/data/empty"
check "a folder without shards" 2 "expected $disk/data/empty/train_small/index.json or $disk/data/empty/train/index.json" \
  job 2 "-c mpt-125m $image -d /data/empty $auto"
check "outside of Slurm" 2 "this is not a Slurm job" env -u SLURM_JOB_ID bash "$root/containers/launch.sb" -c mpt-125m -i none -d "$disk/data"
check "help" 0 "-c CONFIG" bash "$root/containers/launch.sb" --help
finish
