#!/usr/bin/env bash
# Installs what scripts/package made on bare Debian 12 and 13, trains and samples there as an ordinary user without any variable,
# and removes it without a trace. Takes minutes and gigabytes; skipped unless TYCHO_BARE_PACKAGES is the folder of the packages:
#   TYCHO_BARE_PACKAGES=build/package/dist ctest -R bare_packages
#   TYCHO_BARE_PACKAGES=build/package/dist tests/containers/bare_packages.sh bookworm wheel    only these
# Passed on 2026-11-28: the archive and the .deb on both, the wheel on Debian 12 (on Debian 13 on 2026-11-27). pip fetched 2.7 GB (torch and CUDA) in 135 to 649 s on a busy machine.
# Needs PyPI for torch, and what bare_system.sh needs.
set -euo pipefail
[[ -n ${TYCHO_BARE_PACKAGES:-} ]] || { echo "skipped: TYCHO_BARE_PACKAGES names no folder of packages"; exit 77; }
((EUID == 0)) || { echo "skipped: a chroot needs root"; exit 77; }
dist=$(realpath "$TYCHO_BARE_PACKAGES") result=${TYCHO_RESULT:-/dev/null}
# shellcheck source=tests/containers/bare_system.sh
source "$(dirname "$0")/bare_system.sh"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
suites=() kinds=()
for word in "$@"; do
  case $word in
    wheel | tarball | deb) kinds+=("$word") ;;
    bookworm | trixie) suites+=("$word") ;;
    *) echo "expected bookworm, trixie, wheel, tarball or deb, got $word"; exit 2 ;;
  esac
done
((${#kinds[@]})) || kinds=(tarball deb wheel)
((${#suites[@]})) || suites=(bookworm trixie)
passed=0
fail() { echo "$suite $kind: $*"; echo "$passed passed, 1 failed" >"$result"; exit 1; }

# expect TEXT COMMAND: ann's command ends well and says TEXT.
expect() {
  local said status=0
  said=$(as_ann "$2") || status=$?
  ((status == 0)) || fail "exit status $status of $2: $(tail -25 <<<"$said")"
  grep -qE -- "$1" <<<"$said" || fail "expected \"$1\" of $2, got: $(tail -25 <<<"$said")"
  passed=$((passed + 1))
}
# files: everything in the system but what is ann's work and the machine's.
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./home/ann/work \) -prune -o -print | grep -v __pycache__ | sort); }
# gone: nothing is left of the package.
gone() {
  local left
  left=$(comm -13 "$root.before" <(files) | grep -vE "${1:-^$}" || true)
  rm "$root.before"
  [[ -z $left ]] || fail "left behind: $left"
  passed=$((passed + 1))
}

# use TYCHO: what the three packages have to do once they are installed.
use() {
  local tycho=$1 begun
  begun=$(date +%s%N)
  expect 'tycho run' "$tycho --help"
  printf '%s %s: --help in %d ms\n' "$suite" "$kind" $((($(date +%s%N) - begun) / 1000000))
  expect '^commit +[0-9a-f]{12}' "$tycho --version"
  expect 'LibTorch|libtorch' "$tycho version --engine"
  # One OpenMP in the process.
  expect '^1$' "LD_DEBUG=libs $tycho version --engine 2>&1 | grep -E 'calling init: .*/lib(gomp|omp|iomp5)' | sort -u | wc -l"
  begun=$SECONDS
  expect 'done, 12 steps' "mkdir -p work && cd work && $tycho init my-model && cd my-model && mkdir texts && $tycho config --markdown >texts/keys.md &&
    $tycho tokenizer train texts --ext .md --vocab-size 1024 --out data/tokenizer.json &&
    $tycho data convert texts --ext .md --tokenizer data/tokenizer.json --out data --concat-tokens 256 --eos-text '<|endoftext|>' &&
    $tycho run recipes/first.lua model.width=64 model.layers=2 model.ffn_width=128 global_batch=4sp max_duration=12ba --plain"
  expect . "cd work/my-model && $tycho generate runs/first --prompt 'The learning rate' --max-tokens 4"
  echo "$suite $kind: tycho init, a tokenizer, shards and 12 steps in $((SECONDS - begun)) s"
  # A prompt: with the system's readline, which comes with Python, and without.
  local answer='^42'
  [[ -n $(find "$root/usr/lib" "$root/lib/" -name 'libreadline.so.8' -print -quit) ]] || answer='^> 42'
  expect "$answer" "printf '1 + 41\n:quit\n' | script -qec '$tycho repl' /dev/null"
  [[ $answer == ^42 ]] || expect 'this prompt reads plain lines' "printf ':quit\n' | script -qec '$tycho repl' /dev/null"
  # HTTPS with the package's libcurl: any answer of the server shows that its certificate was trusted; in RHEL's layout too.
  answers 'Debian'
  mkdir -p "$root/etc/pki/tls/certs" && cp "$root/etc/ssl/certs/ca-certificates.crt" "$root/etc/pki/tls/certs/ca-bundle.crt"
  mv "$root/etc/ssl/certs" "$root/etc/ssl/away"
  answers 'RHEL'
  mv "$root/etc/pki/tls/certs/ca-bundle.crt" "$root/tmp/bundle.crt"
  answers 'SSL_CERT_FILE' SSL_CERT_FILE=/tmp/bundle.crt
  mv "$root/etc/ssl/away" "$root/etc/ssl/certs"
  rm -r "$root/etc/pki/tls"
  rmdir "$root/etc/pki" 2>/dev/null || true
}
# answers LAYOUT [VARIABLE]: a server that has no such file says so.
answers() {
  local said
  said=$(as_ann "cd work && ${2:-} timeout 100 $tycho data preload https://pypi.org/simple/tycho-lm-has-no-such-file/x.txt got" || true)
  grep -q 'index.json does not exist' <<<"$said" || fail "certificates of $1: expected the answer of the server, got: $said"
  passed=$((passed + 1))
}

for suite in "${suites[@]}"; do
  for kind in "${kinds[@]}"; do
    fresh
    case $kind in
      tarball)
        file=$(echo "$dist"/tycho-*-linux-x86_64-cpu.tar.zst)
        files >"$root.before"
        mkdir "$root/home/ann/tree"
        zstd -dc "$file" | tar -C "$root/home/ann/tree" -xf -  # tar of the bare system has no zstd
        chroot "$root" chown -R ann:ann /home/ann/tree
        use "/home/ann/tree/$(basename "$file" -linux-x86_64-cpu.tar.zst)/bin/tycho"
        rm -r "$root/home/ann/tree"
        gone '^./home/ann/.(cache|local)'
        ;;
      deb)
        file=$(echo "$dist"/tycho-lm_*_amd64.deb)
        files >"$root.before"
        cp "$file" "$root/tmp/"
        as_root "apt-get update -qq && apt-get install -y --no-install-recommends /tmp/$(basename "$file")" >"$root.log" || fail "$(tail -20 "$root.log")"
        use tycho
        as_root "apt-get purge -y tycho-lm" >"$root.log" || fail "$(tail -20 "$root.log")"
        gone '^./home/ann/.(cache|local)|^./var/lib/(apt|systemd)'
        ;;
      wheel)
        file=$(echo "$dist"/tycho_lm-*.whl)
        cp "$file" "$root/tmp/"
        as_root "apt-get update -qq && apt-get install -y --no-install-recommends python3-venv" >"$root.log" || fail "$(tail -20 "$root.log")"
        as_ann "python3 -m venv env && env/bin/pip --version" >"$root.log" || fail "$(tail -20 "$root.log")"
        files >"$root.before"
        begun=$SECONDS
        as_ann "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt env/bin/pip install --no-cache-dir --progress-bar off /tmp/$(basename "$file")" >"$root.log" ||
          fail "$(tail -20 "$root.log")"
        echo "$suite wheel: pip install in $((SECONDS - begun)) s;$(grep -oE '\([0-9.]+ [kMG]B\)' "$root.log" | tr -d '()' |
          awk '{ s += $1 * ($2 == "kB" ? 1e-3 : $2 == "GB" ? 1e3 : 1) } END { printf " %d MB downloaded", s }'), $(du -sm "$root/home/ann/env" | cut -f1) MB on disk"
        use /home/ann/env/bin/tycho
        # Another release of torch is refused by name.
        sed -i.bak "s/^__version__ = .*/__version__ = '2.9.1+cu128'/" "$root"/home/ann/env/lib/python3*/site-packages/torch/version.py
        refused=$(as_ann "env/bin/tycho version --engine" || true)
        grep -q 'expected torch 2.11, got 2.9.1' <<<"$refused" || fail "another torch: $refused"
        passed=$((passed + 1))
        mv "$root"/home/ann/env/lib/python3*/site-packages/torch/version.py{.bak,}
        as_ann "env/bin/pip uninstall -y tycho-lm" >"$root.log" || fail "$(tail -20 "$root.log")"
        [[ -z $(find "$root/home/ann/env" -iname '*tycho*') ]] || fail "left behind: $(find "$root/home/ann/env" -iname '*tycho*')"
        # pip leaves torch, and folders that are empty now.
        [[ -z $(find "$root/home/ann/env/share" -not -type d -not -path '*/share/man/*') ]] || fail "left behind: $(find "$root/home/ann/env/share" -not -type d)"
        gone '^./home/ann/.(cache|local)|^./home/ann/env/lib(64)?/python3|^./home/ann/env/(bin|share|include)'
        ;;
    esac
    rm -f "$root.log"
    clean
    echo "$suite $kind: works, $(($(stat -c %s "$file") / 1000000)) MB"
  done
done
echo "$passed passed, 0 failed" | tee "$result"
