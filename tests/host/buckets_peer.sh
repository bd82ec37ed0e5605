#!/bin/bash
# Uploads to moto, which checks signatures, with the cases of every store; botocore reads what Tycho wrote. Skipped unless TYCHO_S3_PYTHON
# names a Python with moto[server] and boto3; passed on 27 November 2026 with moto 5.2.5, boto3 1.44.5 and botocore 1.44.8:
#   python3 -m venv v && v/bin/pip install 'moto[server]==5.2.5' boto3==1.44.5 && TYCHO_S3_PYTHON=v/bin/python ctest -R buckets_peer
set -euo pipefail
[[ -n ${TYCHO_S3_PYTHON:-} ]] || { echo "skipped: TYCHO_S3_PYTHON names no Python with moto[server] and boto3"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
cd "$scratch"
export AWS_CONFIG_FILE=$scratch/none AWS_SHARED_CREDENTIALS_FILE=$scratch/none MOTO_S3_DEFAULT_MAX_KEYS=7
unset AWS_PROFILE AWS_SESSION_TOKEN S3_ENDPOINT_URL AWS_ENDPOINT_URL_S3
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
mkdir data
coproc server { "$TYCHO_S3_PYTHON" "$root/tests/golden/s3_server.py" data $((20000 + RANDOM % 20000)) 2>server.log; }
# shellcheck disable=SC2034  # used in the trap
to_server=${server[1]}
trap 'exec {to_server}>&-; rm -rf "$scratch"' EXIT
for _ in 1 2; do
  read -r -u "${server[0]}" line || { cat server.log; exit 1; }
  eval "$line"
done
passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi; }
peer() { TYCHO_BUCKET_PEER=s3://texts buckets_test --gtest_filter='Peer/*' >peer.txt || { cat peer.txt; return 1; }; }
check 'the cases of every store' peer
same() { "$TYCHO_S3_PYTHON" - <<'PYTHON'
import boto3
s3 = boto3.client("s3")
found = {o["Key"]: s3.get_object(Bucket="texts", Key=o["Key"]) for o in s3.list_objects_v2(Bucket="texts", MaxKeys=1000)["Contents"] if o["Key"].startswith("UploadsFilesOfAllSizes/")}
(key, answer), = found.items()
body = answer["Body"].read()
state, text = 1, bytearray()
for _ in range(3 * 5 * 2**20 + 7):
    state = (state * 1664525 + 1013904223) % 2**32
    text.append(state >> 24)
assert key.endswith("run/shard") and body == bytes(text) and answer["ETag"].endswith('-4"'), (key, len(body), answer["ETag"])
assert not s3.list_multipart_uploads(Bucket="texts").get("Uploads"), "an upload is unfinished"
PYTHON
}
check 'botocore reads the same bytes, and no upload is unfinished' same
echo "$passed passed, $failed failed" | tee "${TYCHO_RESULT:-/dev/null}"
((failed == 0))
