# shellcheck shell=bash
# Sourced by scripts whose runs keep checkpoints in a store: a folder of their own, no proxies or identities of this machine, and checks
# that are counted.
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "${BASH_SOURCE[0]}")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION S3_ENDPOINT_URL AWS_ENDPOINT_URL_S3
unset AZURE_CLIENT_ID AZURE_CLIENT_SECRET AZURE_FEDERATED_TOKEN_FILE IDENTITY_ENDPOINT
export AWS_CONFIG_FILE=$scratch/none AWS_SHARED_CREDENTIALS_FILE=$scratch/none AZURE_STORAGE_SAS_TOKEN='sv=2021&sig=sas-of-the-test'

passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
checked() {
  echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
  ((failed == 0))
}
# WIDTH LAYERS FFN_WIDTH STEPS EVERY: far.lua and its data.
write_recipe() {
  "$root/tests/make_tiny_data" 32 >/dev/null
  cat >far.lua <<LUA
local t = require "tycho"
local r = t.recipe "far"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "$4ba"
r.model = t.model.llama { width = $1, layers = $2, heads = 2, ffn_width = $3, vocab_size = 384, max_seq_len = 32 }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.tokenizer = "data/tokenizer.json"
r.train_data = t.data.mds { local_dir = "data", predownload = 8 }
r.ckpt.every, r.ckpt.keep = "$5ba", 2
return r
LUA
}
