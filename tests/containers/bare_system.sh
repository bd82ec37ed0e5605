# shellcheck shell=bash
# Bare Debian systems for tests of packages; sourced. Needs root, debootstrap and Debian's packages. The systems are kept in TYCHO_BARE_ROOTS.
# Sets root, the folder of the system that fresh() made; it goes at the end of the script.
# shellcheck shell=bash disable=SC2154
roots=${TYCHO_BARE_ROOTS:-/var/cache/fresh-machine}
root=''
clean() {
  [[ -n $root ]] || return 0
  umount -l "$root/proc" "$root/dev/pts" "$root/dev" 2>/dev/null || true
  rm -rf --one-file-system "$root" "$root.before" "$root.log"
  root=''
}
trap clean EXIT
# fresh: a copy of the bare system of $suite, with this machine's certificates and ways to the network, and the user ann.
fresh() {
  local base=$roots/${suite:?} file
  if [[ ! -e $base/.complete ]]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$base" >"$base.log" 2>&1 || { tail -5 "$base.log"; exit 1; }
    touch "$base/.complete"
  fi
  root=$(mktemp -d "$roots/package.XXXXXX")
  cp -a "$base/." "$root/"
  chmod 755 "$root"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do [[ ! -e $file ]] || cp -aL "$file" "$root$file"; done
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  mount --bind /dev/pts "$root/dev/pts"
  chroot "$root" useradd -m -s /bin/bash ann
}
as_root() { chroot "$root" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "$1" 2>&1; }
as_ann() { chroot --userspec=ann:ann "$root" env -i HOME=/home/ann TERM=dumb LANG=C.UTF-8 PATH="/usr/bin:/bin" bash -c "cd ~ && $1" 2>&1; }
