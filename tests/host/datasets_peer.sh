#!/bin/bash
# The library `datasets` against the stand-in hub of our tests: it reads the rows that hub_data_test finds in conversions from the same stand-in,
# and asks what that test repeats without it. TYCHO_GOLDEN_WRITE=1 writes rows.json and rows_asked.txt anew. Skipped unless TYCHO_DATASETS_PYTHON names
# a Python with it:
#   python3 -m venv v && v/bin/pip install datasets==5.2.0 huggingface_hub==2.4.0 zstandard==0.25.0 && TYCHO_DATASETS_PYTHON=v/bin/python ctest -R datasets_peer
# Passed on 2026-11-28 with these versions and pyarrow 26.0.1.
set -euo pipefail
[[ -n ${TYCHO_DATASETS_PYTHON:-} ]] || { echo "skipped: TYCHO_DATASETS_PYTHON names no Python with datasets"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_DATASETS_PYTHON") golden=$root/tests/golden/hub
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir -p hub/datasets
cp -r "$golden/rows" hub/datasets/
coproc HUB { serve_hub hub 400; }
read -r url <&"${HUB[0]}"
server_pid=$! to_hub=${HUB[1]}
exec {from_hub}<&"${HUB[0]}"
export HF_ENDPOINT=$url HF_HOME=$scratch/home HF_HUB_DISABLE_XET=1 HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_UPDATE_CHECK=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1
unset HF_TOKEN HF_HUB_CACHE HF_DATASETS_CACHE HF_HUB_OFFLINE
"$python" "$golden/rows.py" --read >rows.json
exec {to_hub}>&-
cat <&"$from_hub" >log.txt
wait "$server_pid" || { cat log.txt; echo "the stand-in was asked what it does not know"; exit 1; }
grep -E '^(hub|second) ' log.txt | sort -u >rows_asked.txt
if [[ -n ${TYCHO_GOLDEN_WRITE:-} ]]; then cp rows.json rows_asked.txt "$golden/"; fi
diff "$golden/rows.json" rows.json
diff "$golden/rows_asked.txt" rows_asked.txt
"$python" -c 'import datasets as d; print(f"datasets {d.__version__}: the rows and the requests are those of the goldens")'
