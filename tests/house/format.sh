#!/usr/bin/env bash
# Every C++ and CUDA file is as clang-format 14 leaves it. Other versions differ in details, so they are not used.
set -euo pipefail
cd "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
tool=$(command -v clang-format-14 || true)
[[ -n $tool ]] || { echo "skipped: clang-format-14 is not installed"; exit 77; }
echo 'int  planted ;' | "$tool" --dry-run -Werror --assume-filename=planted.cpp 2>/dev/null &&
  { echo "clang-format did not see a planted offence"; exit 1; }
status=0
find bench bindings host tests trainer -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort |
  xargs -P 2 -n 16 "$tool" --dry-run -Werror >"$list" 2>&1 || status=$?
((status == 0)) || {
  echo "Not formatted (places, file); run clang-format-14 -i on:"
  sed -n 's/^\([^ :]*\):[0-9]*:.*error: .*/\1/p' "$list" | sort | uniq -c
  exit 1
}
