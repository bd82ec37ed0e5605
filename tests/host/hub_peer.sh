#!/bin/bash
# The official client against the stand-in hub of our tests, and the two caches in both directions: what huggingface_hub has fetched Tycho uses
# without a request, and the other way round. Skipped unless TYCHO_DATASETS_PYTHON names a Python with it:
#   python3 -m venv v && v/bin/pip install huggingface_hub==2.4.0 && TYCHO_DATASETS_PYTHON=v/bin/python ctest -R hub_peer
# Passed on 2026-11-28 with huggingface_hub 2.4.0.
set -euo pipefail
[[ -n ${TYCHO_DATASETS_PYTHON:-} ]] || { echo "skipped: TYCHO_DATASETS_PYTHON names no Python with huggingface_hub"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_DATASETS_PYTHON")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir -p hub/models/acme/words
cp "$root/tests/golden/tokenizer/whole.json" hub/models/acme/words/tokenizer.json
echo '{}' >hub/models/acme/words/tokenizer_config.json
coproc HUB { serve_hub hub; }
read -r url <&"${HUB[0]}"
server_pid=$! to_hub=${HUB[1]}
exec {from_hub}<&"${HUB[0]}"
export HF_ENDPOINT=$url HF_HUB_DISABLE_XET=1 HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_UPDATE_CHECK=1
unset HF_TOKEN HF_HUB_CACHE HF_HUB_OFFLINE

HF_HOME=$PWD/theirs "$python" -c 'import huggingface_hub as h; h.snapshot_download("acme/words")'
HF_HOME=$PWD/ours tycho fetch hf://acme/words >fetched.txt
(cd theirs/hub/models--acme--words && find . -not -path './.*' \( -type f -o -type l \) | sort) >theirs.txt
(cd ours/hub/models--acme--words && find . -not -path './.*' \( -type f -o -type l \) | sort) >ours.txt
grep -q '/tokenizer.json$' theirs.txt
diff theirs.txt ours.txt
HF_HUB_OFFLINE=1 HF_HOME=$PWD/theirs tycho tokenizer encode hf://acme/words 'a text' >by_theirs.txt
HF_HUB_OFFLINE=1 HF_HOME=$PWD/ours "$python" -c 'import huggingface_hub as h; print(open(h.hf_hub_download("acme/words", "tokenizer.json")).read(), end="")' | cmp - hub/models/acme/words/tokenizer.json
tycho tokenizer encode hub/models/acme/words/tokenizer.json 'a text' | cmp - by_theirs.txt
exec {to_hub}>&-
cat <&"$from_hub" >asked.txt
wait "$server_pid" || { cat asked.txt; echo "the stand-in was asked what it does not know"; exit 1; }
"$python" -c 'import huggingface_hub as h; print(f"huggingface_hub {h.__version__}: caches are equal and used in both directions")'
