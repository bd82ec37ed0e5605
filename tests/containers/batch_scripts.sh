#!/usr/bin/env bash
# The batch scripts for TorchTitan's, Nanotron's and LLM Foundry's jobs, and what they start (tycho-job), with a
# stand-in for srun that runs one task here, without a container.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
export TYCHO_BUILD=${TYCHO_BUILD:-$root/build/cpu} FAKE_LOG=$scratch/log TYCHO_RECIPES=$root/recipes SLURM_JOB_ID=42
export PATH=$scratch/bin:$root/containers:$TYCHO_BUILD/bin:$PATH
mkdir bin "$FAKE_LOG" job
cat >bin/srun <<'SRUN'
#!/bin/bash
options=()
while [[ $1 == -* ]]; do options+=("$1"); shift; done
printf '%s\n' "${options[*]}" >"$FAKE_LOG/srun"
exec "$@"
SRUN
cat >bin/tycho <<'TYCHO'
#!/bin/bash
real=$TYCHO_BUILD/bin/tycho
if [[ $1 != run ]]; then exec "$real" "$@"; fi
printf '%s\n' "$@" >"$FAKE_LOG/run"
"$real" run "${@:2}" --print-only || exit
exit "${FAKE_STATUS:-0}"
TYCHO
cat >bin/dcgmi <<'DCGMI'
#!/bin/bash
echo "$@" >>"$FAKE_LOG/dcgmi"
DCGMI
cat >bin/scontrol <<'SCONTROL'
#!/bin/bash
if [[ $1 == show ]]; then echo "JobState=${FAKE_STATE:-RUNNING} Reason=None"; else echo "$@" >>"$FAKE_LOG/scontrol"; fi
SCONTROL
chmod +x bin/*
cd job
mkdir -p data/train data/val
echo '{}' | tee data/train/index.json >data/val/index.json

# ---- TorchTitan ----
cat >llama3_8b.toml <<'TOML'
[model]
name = "llama3"
flavor = "8B"

[optimizer]
name = "AdamW"
lr = 3e-4

[lr_scheduler]
warmup_steps = 20

[training]
local_batch_size = 5
seq_len = 8192
steps = 100
dataset = "c4"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1

[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
TOML
titan=$root/containers/multinode_trainer.slurm
CONFIG_FILE=llama3_8b.toml DATA_DIR=$PWD/data check "TorchTitan's TOML" 0 "global_batch = \"360sp\"" bash "$titan" global_batch=360sp
check "the site's profiler waits meanwhile" 0 "profile --pause
profile --resume" cat "$FAKE_LOG/dcgmi"
check "its options" 0 "--kill-on-bad-exit=0 --wait=600" cat "$FAKE_LOG/srun"
DATA_DIR=$PWD/data check "without CONFIG_FILE" 0 "recipe \"llama-8b\"" bash "$titan"
touch tycho.sqsh
DATA_DIR=$PWD/data TYCHO_IMAGE=$PWD/tycho.sqsh check "in a container" 0 "llama-8b" bash "$titan"
check "which sees the job's folder and the data" 0 "--container-mounts=$PWD:$PWD,$PWD/data:$PWD/data" cat "$FAKE_LOG/srun"
TYCHO_IMAGE=/none.sqsh check "an image that is not there" 2 "there is no image /none.sqsh" bash "$titan"
CONFIG_FILE=none.toml check "a configuration that is not there" 2 "no shipped recipe \"none.toml\"" bash "$titan"
rm -f "$FAKE_LOG/scontrol"
FAKE_STATUS=138 DATA_DIR=$PWD/data check "stopped before the time limit" 138 "" bash "$titan"
check "it goes back into the queue" 0 "requeue 42" cat "$FAKE_LOG/scontrol"
rm -f "$FAKE_LOG/scontrol"
FAKE_STATUS=143 FAKE_STATE=COMPLETING DATA_DIR=$PWD/data check "cancelled" 143 "" bash "$titan"
check "it does not" 1 "" test -e "$FAKE_LOG/scontrol"

# ---- Nanotron ----
nanotron=$root/containers/run_tiny_llama.sbatch
check "a recipe in an environment" 0 "recipe \"llama-tiny\"" bash "$nanotron" llama-tiny
check "of the EDF" 0 "--environment=tycho" cat "$FAKE_LOG/srun"
TYCHO_EDF=none check "or without one" 0 "seed = 7" bash "$nanotron" llama-tiny seed=7
check "runs what is on PATH" 1 "" grep -q environment "$FAKE_LOG/srun"
FAKE_STATUS=138 TYCHO_EDF=none check "stopped before the time limit" 138 "" bash "$nanotron" llama-tiny
check "it goes back into the queue, too" 0 "requeue 42" cat "$FAKE_LOG/scontrol"
rm -f "$FAKE_LOG/scontrol"
FAKE_STATUS=143 FAKE_STATE=COMPLETING TYCHO_EDF=none check "cancelled" 143 "" bash "$nanotron" llama-tiny
check "it stays out of the queue" 1 "" test -e "$FAKE_LOG/scontrol"
check "no configuration" 2 "expected a configuration as the first argument" bash "$nanotron"

# ---- a data set ----
convert=$root/containers/convert_c4.sbatch
mkdir -p store/c4/en
for part in train.00000 train.00001 validation.00000; do
  for i in $(seq 400); do echo "{\"text\": \"$part: document $i counts from $i to $((i * 3)) and rests.\"}"; done |
    gzip >"store/c4/en/c4-$part.json.gz"
done
"$TYCHO_BUILD/bin/tycho" tokenizer train store/c4/en/c4-train.00000.json.gz --format jsonl --vocab-size 300 --out store/tokenizer.json >tokenizer.log 2>&1
export C4_SOURCE=$PWD/store/c4/en C4_TOKENIZER=$PWD/store/tokenizer.json
check "C4's files" 0 "store/my-copy-c4/train" env C4_OUT="$PWD/store/my-copy-c4" bash "$convert" tycho.sqsh "$PWD/store" 2
check "in the container" 0 "--container-mounts=$PWD/store:$PWD/store" cat "$FAKE_LOG/srun"
check "both splits are data sets" 0 "train
val" tycho data inspect store/my-copy-c4
check "train has both files, val its own" 0 "800
400" sh -c "tycho data convert store/c4/en/c4-train*.gz --tokenizer store/tokenizer.json --eos-text '<|endoftext|>' --out again; \
  tycho data convert store/c4/en/c4-val*.gz --tokenizer store/tokenizer.json --eos-text '<|endoftext|>' --out again --split val"
check "with the bytes that tycho data convert gives" 0 "" cmp again/train/index.json store/my-copy-c4/train/index.json
check "a second time nothing is converted" 0 "train is there already" bash "$convert" none "$PWD/store" 2
C4_SPLITS=train_small,val_xxsmall check "small splits" 0 "store/my-copy-c4/val_xxsmall" bash "$convert" none "$PWD/store" 2
check "no number of threads" 2 "NUM_WORKERS expected a number of threads, got many" bash "$convert" none "$PWD/store" many
check "too few arguments" 2 "expected IMAGE DATA_DIR NUM_WORKERS, got 1 arguments" bash "$convert" none
check "a folder that is not there" 2 "expected the full path of a folder" bash "$convert" none /nowhere 2
check "an image that is not there" 2 "there is no image none.sqsh" bash "$convert" none.sqsh "$PWD/store" 2
C4_SPLITS="test" check "a split that is none" 12 "expected files of the split test, got train, validation" bash "$convert" none "$PWD/store" 2
C4_SOURCE=$PWD/data check "files that are not there" 12 "$PWD/data" env C4_OUT="$PWD/other" bash "$convert" none "$PWD/store" 2

# ---- tycho-job ----
check "an option that is none" 2 "unknown option -x" tycho-job -x llama-tiny
check "-n without a number" 2 "expected a number of ranks, got \"all\"" tycho-job -n all llama-tiny
check "help" 0 "tycho-job [-d DATADIR]" tycho-job --help
check "LLM Foundry's names" 0 "seq_len=1024 global_batch=64sp micro_batch=4sp max_duration=2ep run_dir=/ckpt/\\{run_name\\} ckpt.every=10ba ckpt.keep=0 recompute.mode=full" \
  tycho-job --print mpt-125m max_seq_len=1024 global_train_batch_size=64 device_train_microbatch_size=4 max_duration=2 save_folder=/ckpt \
  save_interval=10ba save_num_checkpoints_to_keep=-1 fsdp_config.activation_checkpointing=true
check "sharding" 0 "parallel.dp_shard=-1 parallel.reshard_after_forward=false" tycho-job --print mpt-125m fsdp_config.sharding_strategy=SHARD_GRAD_OP
check "a strategy that is none" 2 "expected FULL_SHARD, SHARD_GRAD_OP or NO_SHARD" tycho-job --print mpt-125m fsdp_config.sharding_strategy=ALL
check "its own keys stay" 0 "optimizer.lr=1e-3 model.width=512" tycho-job --print mpt-125m optimizer.lr=1e-3 model.d_model=512
check "the operator's localhost is this host" 0 "--nodes 2 --node 0" env RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost tycho-job -n 4 --print llama-tiny
check "copies before training" 0 "tycho launch -n 2 run" tycho-job -n 2 --copy --print mpt-125m \
  variables.data_remote="$PWD/data" variables.data_local="$PWD/local" train_data.split=train eval_data.val.split=val
cat >"$scratch/bin/tycho" <<'TYCHO'
#!/bin/bash
if [[ $1 == launch ]]; then printf '%s ' "$@" "TYCHO_DATA=$TYCHO_DATA"; echo; exit 0; fi
exec "$TYCHO_BUILD/bin/tycho" "$@"
TYCHO
copying=(tycho-job -n 2 --copy mpt-125m variables.data_remote="$PWD/data" variables.data_local="$PWD/local")
check "the data is copied, and read there" 0 "TYCHO_DATA=$PWD/local" "${copying[@]}"
check "every split" 0 "" cmp data/val/index.json local/val/index.json
echo old >local/train/shard
check "what is complete stays" 0 "TYCHO_DATA=$PWD/local" "${copying[@]}"
check "as it was" 0 "old" cat local/train/shard
echo '{"version": 2}' >data/train/index.json
check "new data" 0 "TYCHO_DATA=$PWD/local" "${copying[@]}"
check "replaces it" 1 "" test -e local/train/shard
check "--copy without a remote folder" 2 "--copy needs variables.data_remote" tycho-job -n 2 --copy mpt-125m
check "--copy in every rank" 2 "--copy needs -n" tycho-job --copy mpt-125m
finish
