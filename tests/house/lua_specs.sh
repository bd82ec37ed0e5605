#!/usr/bin/env bash
# The specs of the Lua library, run by the program itself.
set -euo pipefail
[[ -x $TYCHO_BUILD/bin/tycho ]] || { echo "no $TYCHO_BUILD/bin/tycho: build the target tycho"; exit 1; }
"$TYCHO_BUILD/bin/tycho" test "$TYCHO_SOURCE_DIR/tests/lua" | tee "$TYCHO_RESULT"
