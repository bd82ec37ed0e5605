#!/usr/bin/env bash
# An installed tree is small, knows nothing of the build tree, and works after it was moved.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

cmake --install "$TYCHO_BUILD" --prefix "$scratch/first" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
mv "$scratch/first" "$scratch/moved"
cd "$scratch/moved"
for file in bin/tycho bin/tycho-job bin/tycho-convert lib/libtycho_engine.so share/tycho/recipes/demo.lua share/tycho/LICENSE; do
  [[ -e $file ]] || fail "the installed tree has no $file"
done
size_mib=$(du -sm . | cut -f1)
((size_mib < 64)) || fail "the installed tree takes $size_mib MiB, more than 64"
for file in bin/tycho lib/*.so; do
  ! readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -qF "$TYCHO_BUILD" || fail "$file looks for libraries in $TYCHO_BUILD"
  ! readelf -d "$file" | grep -q '(RPATH)' || fail "$file has an RPATH, which LD_LIBRARY_PATH cannot override"
done
bin/tycho check share/tycho/recipes/demo.lua
bin/tycho version
PATH=$PWD/bin:$PATH tycho-job --plan 8 mpt-1b | grep -q 'in 8 ranks' || fail "tycho-job does not find the shipped recipes"
