#!/usr/bin/env bash
# Nodes with different numbers of CPUs: every rank computes on its share of what Slurm allocated on its own node, although
# nothing binds it, and nodes with different numbers of ranks train together.
set -euo pipefail
# shellcheck source=tests/slurm/story.sh
source "$(dirname "$0")/story.sh" 2 2,1
sed -i 's/, r.threads = 32, "8sp", "12ba", 1/ = 32, "12sp", "12ba"/' tiny.lua
two=$(($(nproc) < 2 ? 1 : 2))
check "doctor sees two CPUs on one node" 0 "$two cores usable" srun -N1 -n1 --cpus-per-task=2 -w n1 tycho doctor
check "and one on the other" 0 "1 cores usable" srun -N1 -n1 -w n2 tycho doctor
check "a rank with the whole node" 0 "\"$two threads, " srun -N1 -n1 --cpus-per-task=2 -w n1 tycho run tiny.lua run_dir=both --plain
check "with a part of it" 0 "\"1 threads, " srun -N1 -n1 --cpus-per-task=1 -w n1 tycho run tiny.lua run_dir=half --plain
check "two ranks share it" 0 "\"1 threads, " srun -N1 -n2 -w n1 tycho run tiny.lua run_dir=shared --plain
check "two ranks on one node and one on the other" 0 "ranks=3" srun -N2 -n3 tycho run tiny.lua run_dir=uneven --plain
check "to compare with, three ranks of a launcher" 0 "" tycho launch -n 3 run tiny.lua run_dir=launched --plain threads=1
check "give the same losses" 0 "" cmp <(losses launched) <(losses uneven)
finish
