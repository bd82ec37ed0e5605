#!/bin/bash
# Remote data from an S3 server that checks signatures. Skipped unless TYCHO_S3_PYTHON names a Python with moto[server] and boto3:
#   python3 -m venv v && v/bin/pip install 'moto[server]==5.2.5' boto3==1.44.5 && TYCHO_S3_PYTHON=v/bin/python ctest -R remote_s3
set -euo pipefail
[[ -n ${TYCHO_S3_PYTHON:-} ]] || { echo "skipped: TYCHO_S3_PYTHON names no Python with moto[server] and boto3"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
export AWS_CONFIG_FILE=$scratch/none AWS_SHARED_CREDENTIALS_FILE=$scratch/none AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_SESSION_TOKEN S3_ENDPOINT_URL AWS_ENDPOINT_URL_S3
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1

"$root/tests/make_tiny_data" 16

coproc server { "$TYCHO_S3_PYTHON" "$root/tests/golden/s3_server.py" data $((20000 + RANDOM % 20000)) 2>server.log; }
# shellcheck disable=SC2034  # used in the trap
to_server=${server[1]}
trap 'exec {to_server}>&-; rm -rf "$scratch"' EXIT
for _ in 1 2 3; do
  read -r -u "${server[0]}" line || { cat server.log; exit 1; }
  eval "$line"
done

passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
refused() { local status=0; "${@:2}" >out.txt 2>&1 || status=$?; ((status == 12)) && grep -q "$1" out.txt; }

check 'a signed download' tycho data preload 's3://texts/a b/c+d' near
check 'the same bytes' cmp near/train/shard.00000.mds data/train/shard.00000.mds
check 'a wrong secret' refused SignatureDoesNotMatch env AWS_SECRET_ACCESS_KEY=wrong tycho data preload 's3://texts/a b/c+d' far
check 'no credentials' refused 'not signed' env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY tycho data preload 's3://texts/a b/c+d' far
check 'an absent folder' refused 'does not exist' tycho data preload s3://texts/absent far
shows_no_secret() { ! grep -rqF "$AWS_SECRET_ACCESS_KEY" out.txt near; }
check 'no secret in messages' shows_no_secret
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
