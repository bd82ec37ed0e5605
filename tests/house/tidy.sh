#!/usr/bin/env bash
# clang-tidy finds nothing in the foundations: files, locks, sockets, JSON. All of the tree takes half an hour, so the rest is for
# people: tests/house/tidy.sh FILE... checks those files.
set -euo pipefail
cd "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}"
tool=$(command -v clang-tidy-14 || true)
[[ -n $tool ]] || { echo "skipped: clang-tidy-14 is not installed"; exit 77; }
options=(-std=c++20 -I. -DFMT_SHARED)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include <string>\n#include <utility>\nstd::string f(std::string s) { std::string t = std::move(s); return t + s; }\n' >"$scratch/planted.cpp"
"$tool" --quiet --config-file=.clang-tidy "$scratch/planted.cpp" -- "${options[@]}" >/dev/null 2>&1 &&
  { echo "clang-tidy did not see a planted offence"; exit 1; }
files=("$@")
((${#files[@]})) || mapfile -t files < <(find trainer/base trainer/checkpoint trainer/control trainer/rendezvous -name '*.cpp' | sort)
printf '%s\n' "${files[@]}" | xargs -P 2 -n 2 sh -c '"$0" --quiet "$@" -- '"${options[*]}"' 2>/dev/null' "$tool" ||
  { echo "clang-tidy has found the lines above"; exit 1; }
