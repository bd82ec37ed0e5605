# shellcheck shell=bash
# The Debian packages that Tycho is built with, and how they are installed. Sourced by scripts/{setup,cross_aarch64}.

# Libraries: for this machine by setup, for arm64 by cross_aarch64.
library_packages=(
  libluajit-5.1-dev libfmt-dev libcxxopts-dev nlohmann-json3-dev libxxhash-dev libutf8proc-dev libgtest-dev
  libyaml-cpp-dev libtomlplusplus-dev libre2-dev libreadline-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev
  libbrotli-dev libbz2-dev libsnappy-dev libssl-dev
)

say() { echo "[${0##*/}] $*"; }
die() { echo "[${0##*/}] $*" >&2; exit 1; }

# install_packages PACKAGE...: as root, or with sudo that needs no password.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local root=()
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null ||
      die "Packages are missing. Run this, then scripts/${0##*/} again:
  sudo apt-get install --no-install-recommends ${missing[*]}"
    root=(sudo -n)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local log; log=$(mktemp)
  "${root[@]}" apt-get update -qq >"$log" 2>&1 || say "apt-get update failed, continuing: $(tail -1 "$log")"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { tail -5 "$log" >&2; die "apt-get install failed (above; whole log in $log). Run scripts/${0##*/} again to continue."; }
  rm -f "$log"
}
