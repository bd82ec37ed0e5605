#!/bin/bash
# Exports of a Llama and a Qwen3, each read by transformers and by llama.cpp's converter to GGUF. Skipped unless TYCHO_GGUF_PYTHON names a
# Python with gguf (for what it needs itself), torch and transformers, and TYCHO_GGUF_CONVERTER the converter, which the source package of llama-cpp-python has:
#   python3 -m venv v && v/bin/pip install gguf==0.19.0 sentencepiece torch==2.11.0 transformers==5.23.0 scikit-build-core
#   v/bin/pip download --no-deps --no-binary :all: --no-build-isolation llama-cpp-python==0.3.36 && tar xf llama_cpp_python-*.tar.gz
#   TYCHO_GGUF_PYTHON=v/bin/python TYCHO_GGUF_CONVERTER=llama_cpp_python-0.3.36/vendor/llama.cpp/convert_hf_to_gguf.py ctest -R gguf_peer
set -euo pipefail
[[ -n ${TYCHO_GGUF_PYTHON:-} && -n ${TYCHO_GGUF_CONVERTER:-} ]] || { echo "skipped: TYCHO_GGUF_PYTHON and TYCHO_GGUF_CONVERTER name no converter"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_GGUF_PYTHON") converter=$(realpath "$TYCHO_GGUF_CONVERTER")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH HF_HUB_OFFLINE=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for model in icl/model chat_answers; do
  name=${model%%/*}
  tycho convert "$root/tests/golden/$model" "runs/$name" >/dev/null
  tycho convert "runs/$name" "$name" --dtype fp32 >/dev/null
  "$python" "$root/tests/golden/gguf_export.py" "$name" "$converter" >out.txt 2>&1 || { cat out.txt; exit 1; }
  tail -1 out.txt
done
