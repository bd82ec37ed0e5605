#!/usr/bin/env bash
# The specs of the Lua library, run by the program itself: all, or those whose names begin with a letter of a set such as [a-e].
set -euo pipefail
[[ -x $TYCHO_BUILD/bin/tycho ]] || { echo "no $TYCHO_BUILD/bin/tycho: build the target tycho"; exit 1; }
"$TYCHO_BUILD/bin/tycho" test "$TYCHO_SOURCE_DIR/tests/lua/"${1:-}*_spec.lua | tee "$TYCHO_RESULT"
