#!/usr/bin/env bash
# clang-tidy finds nothing in libraries where a mistake costs most: files, locks, sockets, secrets, JSON, what a run leaves behind.
# All of the tree takes half an hour of one core, so the rest is for people: tests/house/tidy.sh FILE... checks those files.
# --of-these FILE... checks only files of these libraries.
set -euo pipefail
cd "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}"
tool=$(command -v clang-tidy-14 || true)
[[ -n $tool ]] || { echo "skipped: clang-tidy-14 is not installed"; exit 77; }
options=(-std=c++20 -I. -DFMT_SHARED)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include <string>\n#include <utility>\nstd::string f(std::string s) { std::string t = std::move(s); return t + s; }\n' >"$scratch/planted.cpp"
printf '#include "%s"\n' "$scratch/planted.cpp" >"$scratch/unity.cxx"
for source in planted.cpp unity.cxx; do
  "$tool" --quiet --config-file=.clang-tidy --header-filter='.*' "$scratch/$source" -- "${options[@]}" >/dev/null 2>&1 &&
    { echo "clang-tidy did not see an offence planted in $source"; exit 1; }
done
libraries=(base rendezvous checkpoint lock control http identities callbacks run_folder comm/sockets)
if [[ ${1:-} == --of-these ]]; then
  shift
  mapfile -t sources < <(printf '%s\n' "$@" | grep -E "^trainer/($(IFS='|'; echo "${libraries[*]}"))/.*\.cpp$" || true)
  ((${#sources[@]})) || exit 0
else
  sources=("$@")
fi
# One file includes all sources of a library, so that headers are read and checked once for it.
build=$(realpath -m "${TYCHO_BUILD:-build/cpu}")/trainer/CMakeFiles
for library in "${libraries[@]##*/}"; do
  ((${#} == 0)) || break
  unity=("$build/tycho_$library.dir/Unity/"unity_*_cxx.cxx)
  [[ -e ${unity[0]} ]] || { echo "no sources in $build/tycho_$library.dir/Unity: configure first, or correct the list of libraries here"; exit 1; }
  printf '#include "%s"\n' "${unity[@]}" >"$scratch/$library.cxx"
  sources+=("$scratch/$library.cxx")
done
printf '%s\n' "${sources[@]}" | xargs -P 2 -n 1 sh -c '"$0" --quiet --config-file=.clang-tidy "$@" -- '"${options[*]}"' 2>/dev/null' "$tool" ||
  { echo "clang-tidy has found the lines above"; exit 1; }
