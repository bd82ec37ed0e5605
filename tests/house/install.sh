#!/usr/bin/env bash
# An installed tree is small, knows nothing of the build tree, and works after it was moved.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

cmake --install "$TYCHO_BUILD" --prefix "$scratch/first" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
mv "$scratch/first" "$scratch/moved"
cd "$scratch/moved"
for file in bin/tycho bin/tycho-job lib/libtycho_engine.so share/tycho/recipes/demo.lua share/tycho/LICENSE \
  share/man/man1/tycho.1 share/bash-completion/completions/tycho share/zsh/site-functions/_tycho share/fish/vendor_completions.d/tycho.fish; do
  [[ -e $file ]] || fail "the installed tree has no $file"
done
size_mib=$(du -sm . | cut -f1)
((size_mib < 64)) || fail "the installed tree takes $size_mib MiB, more than 64"
for file in bin/tycho lib/*.so; do
  ! readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -qF "$TYCHO_BUILD" || fail "$file looks for libraries in $TYCHO_BUILD"
  ! readelf -d "$file" | grep -q '(RPATH)' || fail "$file has an RPATH, which LD_LIBRARY_PATH cannot override"
done

# Hardened. LuaJIT brings stack checks and checked copies of its own into bin/tycho: a count and the name of a call that it has not
# tell whether our code has them.
for file in bin/tycho lib/*.so; do
  [[ $(readelf -lW "$file") == *GNU_RELRO* ]] || fail "$file has no RELRO"
  [[ $(readelf -dW "$file") == *BIND_NOW* ]] || fail "$file binds symbols lazily, and its table of functions can be written"
done
for file in bin/tycho lib/libtycho_engine.so; do
  objdump -d --no-show-raw-insn "$file" | grep -o 'call.*<__[a-z_]*chk[a-z_]*@' >"$scratch/checks" || true
  stacks=$(grep -c __stack_chk_fail "$scratch/checks" || true)
  ((stacks > 1000)) || fail "$stacks functions of $file check their stack: expected more than 1000"
  grep -q __recv_chk "$scratch/checks" || fail "$file does not check the size of what it receives"
done
bin/tycho check share/tycho/recipes/demo.lua
bin/tycho version
PATH=$PWD/bin:$PATH tycho-job --plan 8 mpt-1b | grep -q 'in 8 ranks' || fail "tycho-job does not find the shipped recipes"

# The manual page has every verb, and troff takes it.
for verb in run ckpt sweep; do grep -q "^.SH ${verb^^}$" share/man/man1/tycho.1 || fail "the manual page has no section on $verb"; done
if command -v groff >/dev/null; then
  [[ -z $(groff -man -Tascii -ww share/man/man1/tycho.1 2>&1 >/dev/null) ]] || fail "troff complains about the manual page"
fi
bash -n share/bash-completion/completions/tycho

# The list of what was installed is complete: nothing is left when it is removed.
xargs rm <share/tycho/installed.txt
[[ -z $(find . -type f) ]] || fail "not in share/tycho/installed.txt: $(find . -type f)"

# Where LibTorch is closed to others, the install says so.
torch=$(sed -n 's/^TYCHO_TORCH:PATH=//p' "$TYCHO_BUILD/CMakeCache.txt")
closed=0 at=$torch/lib
while [[ $at != / ]]; do [[ $(stat -c %A "$at") == *[xt] ]] || closed=1; at=$(dirname "$at"); done
warned=0
! grep -q "is closed to other users" "$scratch/log" || warned=1
((warned == closed)) || fail "a warning about closed folders: expected $closed, got $warned"
