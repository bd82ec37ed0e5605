#!/bin/bash
# azure-storage-blob judges our stand-in for Azure, and what Tycho wrote there: it reads a checkpoint that Tycho uploaded, Tycho reads one
# that it uploaded, and neither asks for anything that the stand-in answers with 501. Skipped unless TYCHO_AZURE_PYTHON names a Python with
# azure-storage-blob; passed on 27 November 2026 with azure-storage-blob 12.31.1:
#   python3 -m venv v && v/bin/pip install azure-storage-blob==12.31.1 && TYCHO_AZURE_PYTHON=v/bin/python ctest -R azure_peer
set -euo pipefail
[[ -n ${TYCHO_AZURE_PYTHON:-} ]] || { echo "skipped: TYCHO_AZURE_PYTHON names no Python with azure-storage-blob"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset AZURE_CLIENT_ID AZURE_CLIENT_SECRET AZURE_FEDERATED_TOKEN_FILE IDENTITY_ENDPOINT
export AZURE_STORAGE_SAS_TOKEN='sv=2021&sig=sas-of-the-test'
mkdir log
coproc server { serve_store azure log; }
# shellcheck disable=SC2034  # used in the trap
to_server=${server[1]}
trap 'exec {to_server}>&-; rm -rf "$scratch"' EXIT
read -r -u "${server[0]}" url
export AZURE_STORAGE_SERVICE_ENDPOINT=$url/account
passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
"$root/tests/make_tiny_data" 32 >/dev/null
cat >far.lua <<'LUA'
local t = require "tycho"
local r = t.recipe "far"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "4ba"
r.model = t.model.llama { width = 128, layers = 4, heads = 2, ffn_width = 512, vocab_size = 384, max_seq_len = 32 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.tokenizer = "data/tokenizer.json"
r.train_data = t.data.mds { local_dir = "data" }
r.ckpt.every, r.ckpt.keep = "2ba", 2
return r
LUA
far() { tycho run far.lua threads=1 'ckpt.remote=az://account/container/{run_name}' >run.txt 2>&1 || { cat run.txt; return 1; }; }
check 'a run that uploads' far
official() { "$TYCHO_AZURE_PYTHON" "$root/tests/golden/azure_peer.py" runs/far far; }
check 'azure-storage-blob reads what Tycho wrote, and writes' official
gets() {
  tycho ckpt verify az://account/container/official >get.txt 2>&1 && tycho ckpt get az://account/container/official copy >>get.txt 2>&1 || { cat get.txt; return 1; }
  tycho ckpt diff copy runs/far >diff.txt || { cat diff.txt; return 1; }
}
check 'Tycho reads what azure-storage-blob wrote' gets
known() { ! grep '^501' log/requests; }
check 'the stand-in knows every request' known
hides() { ! grep -rqF sas-of-the-test runs run.txt get.txt; }
check 'no secret is shown' hides
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
