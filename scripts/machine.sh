# What the scripts share: their help, and what they ask about this machine. Sourced by the scripts beside it.

tycho_cache=${TYCHO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tycho}
libtorch_version=2.11.0
libtorch_env=$tycho_cache/libtorch-$libtorch_version

this_script=$(dirname "${BASH_SOURCE[0]}")/${0##*/}

# Prints the comment that opens the script.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$this_script"; }

# help_if_asked ARGUMENT...: -h or --help among them prints the help and ends the script.
help_if_asked() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) print_help; exit 0 ;; esac
  done
}

# refuse TEXT: says what is wrong with the command line and how it is used, and ends the script.
refuse() {
  printf '[%s] %s\n\n' "${0##*/}" "$*" >&2
  print_help >&2
  exit 2
}

# Prints the folder of the wheels' Python packages; nothing when there is none yet.
wheels_folder() {
  local folder
  for folder in "$libtorch_env"/lib/python3*/site-packages; do
    if [[ -d $folder ]]; then echo "$folder"; return; fi
  done
}

# Prints the CUDA compiler: $CUDACXX, the one on PATH, the toolkit's, or the one that `scripts/setup --cuda` fetched.
find_nvcc() {
  local nvcc fetched=
  [[ ! -e $libtorch_env/done/set-nvcc ]] || fetched=$(wheels_folder)/nvidia/cu13/bin/nvcc
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" \
    /usr/local/cuda/bin/nvcc "$fetched"; do
    if [[ -n $nvcc && -x $nvcc ]]; then echo "$nvcc"; return; fi
  done
  return 1
}

has_gpu() {
  [[ -e /dev/nvidia0 ]] || { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
}

# Whether the LibTorch that will be used can drive a GPU.
torch_has_cuda() {
  [[ -e ${TYCHO_TORCH:-$(wheels_folder)/torch}/lib/libtorch_cuda.so ]]
}

# build_tree PRESET TARGET...: configures and builds build/PRESET. On a terminal Ninja shows its one line of progress; in a
# log, every 25th step and whatever the compilers say.
build_tree() {
  local preset=$1 log=build/$1/configure.log; shift
  mkdir -p "build/$preset"
  cmake --preset "$preset" >"$log" 2>&1 </dev/null || { cat "$log"; echo "[build] cmake failed (above)"; return 1; }
  local command=(cmake --build "build/$preset" --parallel "$(nproc)" --target "$@")
  if [[ -t 1 ]]; then
    "${command[@]}"
  else
    "${command[@]}" | awk '!/^\[[0-9]+\/[0-9]+\]/ || NR % 25 == 1 { print; fflush() }'
  fi
}
