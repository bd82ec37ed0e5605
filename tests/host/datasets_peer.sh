#!/bin/bash
# Rows of data sets of the hub as the library `datasets` reads them, against the golden that hub_data_test compares conversion with.
# Skipped unless TYCHO_DATASETS_PYTHON names a Python with it:
#   python3 -m venv v && v/bin/pip install datasets==5.2.0 huggingface_hub==2.4.0 zstandard==0.25.0 && TYCHO_DATASETS_PYTHON=v/bin/python ctest -R datasets_peer
# Passed on 2026-11-28 with these versions and pyarrow 26.0.1.
set -euo pipefail
[[ -n ${TYCHO_DATASETS_PYTHON:-} ]] || { echo "skipped: TYCHO_DATASETS_PYTHON names no Python with datasets"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
"$TYCHO_DATASETS_PYTHON" "$root/tests/golden/hub/rows.py" --check
