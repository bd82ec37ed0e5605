#!/usr/bin/env bash
# The batch scripts of containers/, submitted to a Slurm and without a container.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 2
# job SBATCH_ARGUMENT...: submits a job, and prints its log and its state when it has ended.
job() {
  number=$(sbatch --parsable --output="$scratch/job-%j.out" "$@")
  outcome "$number" "$scratch/job-$number.out"
}
newest_job() { squeue --noheader --states=all --format=%i | sort -n | tail -1; }
check "launch.sb" 0 "in 4 ranks
ranks=4
state COMPLETED" job -N2 --ntasks-per-node=2 "$launch" -c ./tiny.lua -i none -d "$scratch/data" -s -I 4 -N 2 -F "$scratch/wrapped"
check "has its nodes to itself" 0 "NumCPUs=32
OverSubscribe=NO" scontrol show job "$(newest_job)"
check "and shares them where it is told to, with the CPUs that it asks for" 0 "ranks=2
state COMPLETED" job -N1 --ntasks-per-node=2 --oversubscribe --cpus-per-task=3 "$launch" -c ./tiny.lua -i none -d "$scratch/data" -y "run_dir=$scratch/shared"
check "three for each rank" 0 "NumCPUs=6
OverSubscribe=YES" scontrol show job "$(newest_job)"
check "saves where -F says" 0 "8
12" sh -c "tycho ckpt ls '$scratch/wrapped/tiny' | awk '{ print \$1 }'"
check "a mistake ends the job on one node" 0 "unknown key  optimizer.lrr
state FAILED" job -N2 --ntasks-per-node=2 "$launch" -c ./tiny.lua -i none -d "$scratch/data" -y optimizer.lrr=1
check "before any rank starts" 1 "" grep -l "mesh: " "job-$number.out"
CONFIG_FILE=./tiny.lua check "multinode_trainer.slurm" 0 "ranks=4
state COMPLETED" job --partition=low --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 "$root/containers/multinode_trainer.slurm" run_dir=titan
mkdir -p logs
TYCHO_EDF=none check "run_tiny_llama.sbatch" 0 "ranks=4
state COMPLETED" job --nodes=2 --ntasks-per-node=2 --error=/dev/null "$root/containers/run_tiny_llama.sbatch" ./tiny.lua run_dir=nanotron
check "the three give the same losses" 0 "" cmp <(losses wrapped/tiny) <(losses titan)
check "and as many" 0 "" cmp <(losses wrapped/tiny) <(losses nanotron)
mkdir -p store/c4/en
gzip -c train.jsonl >store/c4/en/c4-train.00000.json.gz
cp store/c4/en/c4-train.00000.json.gz store/c4/en/c4-validation.00000.json.gz
cp tokenizer.json store/
export C4_SOURCE=$PWD/store/c4/en C4_TOKENIZER=$PWD/store/tokenizer.json
check "convert_c4.sbatch" 0 "store/my-copy-c4/val
state COMPLETED" job --partition=low "$root/containers/convert_c4.sbatch" none "$PWD/store" 2
check "makes both splits" 0 "train
val" tycho data inspect store/my-copy-c4
finish
