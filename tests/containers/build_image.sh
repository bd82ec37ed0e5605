#!/usr/bin/env bash
# Builds the CPU image from the Dockerfile with buildah, as root and without a daemon, and trains three steps in it as another
# user. Takes as long as a build of Tycho; skipped unless TYCHO_BUILD_IMAGE is a folder for images:
#   apt-get install --no-install-recommends buildah debootstrap
#   TYCHO_BUILD_IMAGE=/var/tmp/tycho-images ctest -R build_image
#
# The base image is made by debootstrap under the name that the Dockerfile has, so no registry is needed: Debian's packages, and
# LibTorch's from PyPI, are. TYCHO_BASE_IMAGE names another base, such as one that was pulled. TYCHO_BUILD_CCACHE is a folder of
# ccache (with a ccache.conf, if it wants one) that the build inside uses, so that a second one takes minutes.
set -euo pipefail
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
[[ -n ${TYCHO_BUILD_IMAGE:-} ]] || { echo "skipped: TYCHO_BUILD_IMAGE names no folder for images"; exit 77; }
for program in buildah debootstrap; do
  command -v $program >/dev/null || { echo "skipped: there is no $program (apt-get install $program)"; exit 77; }
done
((EUID == 0)) || { echo "skipped: debootstrap needs root"; exit 77; }
# shellcheck source=tests/containers/script_cases.sh
source "$root/tests/containers/script_cases.sh"
images=$TYCHO_BUILD_IMAGE
mkdir -p "$images"
printf '[storage]\ndriver = "overlay"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "$images" "$images" >"$images/storage.conf"
# Steps run in a chroot: no daemon, no name spaces and no OCI runtime are needed.
export CONTAINERS_STORAGE_CONF=$images/storage.conf BUILDAH_ISOLATION=chroot
base=${TYCHO_BASE_IMAGE:-docker.io/library/debian:12-slim}

# make_base: Debian's smallest system, with this machine's certificates where pip is told to use them.
make_base() {
  local mirror
  mirror=$(awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; ++i) if ($i ~ /:\/\//) { print $i; exit } }' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true)
  [[ -n $mirror ]] || { echo "expected the URI of a Debian mirror in this machine's apt configuration, found none"; return 1; }
  debootstrap --variant=minbase --include=ca-certificates bookworm "$images/base" "$mirror" || return
  rm -f "$images"/base/var/cache/apt/archives/*.deb
  local container
  container=$(buildah from scratch)
  tar -C "$images/base" -c . >"$images/base.tar"
  buildah add -q "$container" "$images/base.tar" /
  buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  if [[ -n ${PIP_CERT:-} ]]; then
    buildah add -q "$container" "$PIP_CERT" /etc/ssl/pip.crt
    buildah config --env PIP_CERT=/etc/ssl/pip.crt "$container"
  fi
  buildah commit -q "$container" "$base"
  buildah rm "$container"
  rm -rf "$images/base" "$images/base.tar"
}
buildah inspect --type image "$base" >/dev/null 2>&1 || check "a base image" 0 "" make_base

# What git has, as a checkout would be: no build folders.
mkdir source
if git -C "$root" rev-parse >/dev/null 2>&1; then
  git -C "$root" ls-files -z --cached --others --exclude-standard | (cd "$root" && xargs -0 tar -c --ignore-failed-read) | tar -x -C source
else
  cp -r "$root"/. source
fi
shared=()
[[ -z ${TYCHO_BUILD_CCACHE:-} ]] || shared=(--volume "$(realpath "$TYCHO_BUILD_CCACHE"):/root/.ccache")
build() { buildah bud "${shared[@]}" --layers --pull-never --build-arg BASE="$base" --target cpu -f source/containers/Dockerfile -t tycho:cpu source >"$images/build.log" 2>&1 || { tail -30 "$images/build.log"; return 1; }; }
check "the Dockerfile builds" 0 "" build
((failed == 0)) || finish

size_mb() { buildah images --json tycho:cpu | awk -F'"' '/"size":/ { print $4 }'; }
echo "image: $(size_mb), with its base of $(buildah images --json "$base" | awk -F'"' '/"size":/ { print $4; exit }')"
container=$(buildah from --pull-never tycho:cpu)
trap 'buildah rm "$container" >/dev/null 2>&1; rm -rf "$scratch"' EXIT
# inside COMMAND...: as a user whom the image does not know.
inside() { buildah run --user 12345:12345 --workingdir /work "$container" -- "$@"; }
check "it runs as any user" 0 "uid=12345" inside id
check "the program is on PATH" 0 "tycho" inside tycho version
for tool in gcc cc python3 pip cmake; do check "there is no $tool" 0 "" inside sh -c "! command -v $tool"; done
check "nor headers or static archives" 1 "" inside sh -c 'find /opt /usr -name "*.a" -o -name "*.h" -o -name "*.hpp" 2>/dev/null | grep .'
cat >tiny.lua <<'LUA'
local t = require "tycho"
local r = t.recipe "tiny"
r.model, r.tokenizer = t.model.llama { layers = 1, width = 32, heads = 2, ffn_width = 64, vocab_size = 300 }, "tok.json"
r.seq_len, r.global_batch, r.max_duration = 32, "4sp", "3ba"
r.train_data = t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-3 }
return r
LUA
seq 3000 >a.txt
buildah add -q --chown 12345:12345 "$container" tiny.lua a.txt /work/ >/dev/null
check "a tokenizer" 0 "300 tokens" inside tycho tokenizer train a.txt --vocab-size 300 --out tok.json
check "a data set" 0 "" inside tycho data convert a.txt --tokenizer tok.json --no-separator --concat-tokens 32 --out data
check "three steps" 0 "done, 3 steps" inside tycho run tiny.lua --plain
check "which belong to that user" 0 "12345" inside stat -c %u runs/tiny/metrics.jsonl
check "a shipped recipe by its name" 0 "tycho run" inside tycho-job --print mpt-125m
check "the entry point and the user of the image" 0 '"tycho"
1000:1000' buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint | printf "%q"}} {{.OCIv1.Config.User}}' tycho:cpu
finish
