#!/usr/bin/env bash
# Builds Tycho for 64-bit Arm and runs a part of its tests in qemu. Takes as long as a build of Tycho and fetches 1 GB, so it is
# skipped unless TYCHO_CROSS_AARCH64 is set.
set -euo pipefail
[[ -n ${TYCHO_CROSS_AARCH64:-} ]] || { echo "skipped: TYCHO_CROSS_AARCH64 is not set"; exit 77; }
exec "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}/scripts/cross_aarch64"
