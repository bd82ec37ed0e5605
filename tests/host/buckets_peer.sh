#!/bin/bash
# Uploads to moto, which checks signatures, with the cases of every store; botocore reads what Tycho wrote. A whole run loses its machine
# and goes on from moto, with the keys of a user, then with a role that it takes on, and with a web identity; another
# one trains on a network that breaks every third connection (faulty_proxy.py). Skipped unless TYCHO_S3_PYTHON
# names a Python with moto[server] and boto3; passed on 28 November 2026 with moto 5.2.5, boto3 1.44.5 and botocore 1.44.8:
#   python3 -m venv v && v/bin/pip install 'moto[server]==5.2.5' boto3==1.44.5 && TYCHO_S3_PYTHON=v/bin/python ctest -R buckets_peer
set -euo pipefail
[[ -n ${TYCHO_S3_PYTHON:-} ]] || { echo "skipped: TYCHO_S3_PYTHON names no Python with moto[server] and boto3"; exit 77; }
# shellcheck source=tests/host/store_peer.sh
source "$(dirname "$0")/store_peer.sh"
export MOTO_S3_DEFAULT_MAX_KEYS=7
mkdir data
coproc server { "$TYCHO_S3_PYTHON" "$root/tests/golden/s3_server.py" data $((20000 + RANDOM % 20000)) 2>server.log; }
# shellcheck disable=SC2034  # used in the trap
to_server=${server[1]}
trap 'exec {to_server}>&-; rm -rf "$scratch"' EXIT
for _ in 1 2 3; do
  read -r -u "${server[0]}" line || { cat server.log; exit 1; }
  eval "$line"
done
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

rm -rf data
write_recipe 32 2 64 8 2
far() { tycho run far.lua threads=1 'ckpt.remote=s3://texts/{run_name}' "$@" >run.txt 2>&1 || { cat run.txt; return 1; }; }
check 'an undisturbed run' tycho run far.lua threads=1 run_dir=wanted >run.txt
check 'a run that uploads' far --until 4ba
rm -rf runs
printf '[profile team]\nrole_arn = %s\nsource_profile = base\n[profile base]\naws_access_key_id = %s\naws_secret_access_key = %s\n' \
  "$TYCHO_TEST_ROLE" "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >config
role() { env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_CONFIG_FILE="$scratch/config" AWS_PROFILE=team "$@"; }
goes_on() { role tycho run far.lua threads=1 'ckpt.remote=s3://texts/{run_name}' >run.txt 2>&1 && grep -q 'resumed from step 4' runs/far/events.jsonl || { cat run.txt; return 1; }; }
check 'another machine goes on, by a role' goes_on
gets() {
  role tycho ckpt get s3://texts/far copy >get.txt 2>&1 && tycho ckpt reshard wanted --out near >>get.txt 2>&1 || { cat get.txt; return 1; }
  tycho ckpt diff copy near >diff.txt || true # the recipes differ in their folders
  grep -q '^[1-9][0-9]* tensors are equal, 0 differ' diff.txt && ! grep -q '^train_state' diff.txt || { cat diff.txt; return 1; }
}
check 'its last checkpoint has the bits of the undisturbed run' gets
in_both() { [[ $(role tycho ckpt ls runs/far | grep -c ' yes ') == 2 ]]; }
check 'the listing knows what is there' in_both
# moto takes any token; EKS signs its own. The file is what the job gets in place of keys.
printf 'a.web.token' >token
web() {
  env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_WEB_IDENTITY_TOKEN_FILE="$scratch/token" AWS_ROLE_ARN="$TYCHO_TEST_ROLE" \
    tycho ckpt verify s3://texts/far >web.txt 2>&1 && grep -q 'every byte as written' web.txt || { cat web.txt; return 1; }
}
check 'a web identity reads it' web
# A network that breaks every third connection: the run ends well, and what is committed is whole.
exec {to_proxy}> >("$TYCHO_S3_PYTHON" "$root/tests/golden/faulty_proxy.py" 127.0.0.1 "${AWS_ENDPOINT_URL##*:}" 1 >proxy.txt)
proxy_pid=$!
until [[ -s proxy.txt ]]; do kill -0 "$proxy_pid" && sleep 0.1; done
through_proxy() { AWS_ENDPOINT_URL=http://127.0.0.1:$(head -1 proxy.txt) "$@"; }
breaks() {
  through_proxy far run_name=broken && tycho ckpt verify s3://texts/broken >get.txt 2>&1 && [[ $(tycho ckpt ls runs/broken | grep -c ' yes ') == 2 ]] ||
    { cat run.txt get.txt; return 1; }
}
check 'a run on a network that breaks connections' breaks
gets_through_it() {
  rm -rf copy
  through_proxy tycho ckpt get s3://texts/broken copy >get.txt 2>&1 || { cat get.txt; return 1; }
  tycho ckpt diff copy near >diff.txt || true
  grep -q '^[1-9][0-9]* tensors are equal, 0 differ' diff.txt || { cat diff.txt; return 1; }
}
check 'what is read through it has the bits of the undisturbed run' gets_through_it
exec {to_proxy}>&-
wait "$proxy_pid"
sed 1d proxy.txt
hides() { ! grep -rqF "$AWS_SECRET_ACCESS_KEY" runs run.txt get.txt; }
check 'no secret is shown' hides
checked
