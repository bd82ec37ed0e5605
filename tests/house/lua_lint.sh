#!/usr/bin/env bash
# luacheck finds nothing in the Lua library, its specs and the recipes: no undeclared name, no unused variable, no shadowing.
set -euo pipefail
cd "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v luacheck >/dev/null || { echo "skipped: luacheck is not installed (Debian: lua-check)"; exit 77; }
echo 'local unused = misspelt' | luacheck --quiet --no-color --std luajit - >/dev/null &&
  { echo "luacheck did not see a planted offence"; exit 1; }
luacheck --quiet --no-color lua tests/lua recipes
