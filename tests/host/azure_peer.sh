#!/bin/bash
# azure-storage-blob judges our stand-in for Azure, and what Tycho wrote there: it reads a checkpoint that Tycho uploaded, Tycho reads one
# that it uploaded, and neither asks for anything that the stand-in answers with 501. Skipped unless TYCHO_AZURE_PYTHON names a Python with
# azure-storage-blob; passed on 28 November 2026 with azure-storage-blob 12.31.1:
#   python3 -m venv v && v/bin/pip install azure-storage-blob==12.31.1 && TYCHO_AZURE_PYTHON=v/bin/python ctest -R azure_peer
set -euo pipefail
[[ -n ${TYCHO_AZURE_PYTHON:-} ]] || { echo "skipped: TYCHO_AZURE_PYTHON names no Python with azure-storage-blob"; exit 77; }
# shellcheck source=tests/host/store_peer.sh
source "$(dirname "$0")/store_peer.sh"
mkdir log
coproc server { serve_store azure log; }
# shellcheck disable=SC2034  # used in the trap
to_server=${server[1]}
trap 'exec {to_server}>&-; rm -rf "$scratch"' EXIT
read -r -u "${server[0]}" url
export AZURE_STORAGE_SERVICE_ENDPOINT=$url/account
write_recipe 128 4 512 4 2
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
checked
