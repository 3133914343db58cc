#!/bin/bash
# prepare.sh [STEP...]: both engines and their model on a GPU machine that reaches no package registry.
# Steps: site llama model quantize. Each is done once; started again, it goes on where it was interrupted.
# PARTS holds llama.tar.xz (llama.cpp's source with gguf-py), vllm/ (wheels of vLLM and what it needs beside the
# machine's own torch), loadgen/ (wheels of loadgen's dependencies), vocab.gguf and tokenizer/ (see README.md here).
set -eu
WORK=${WORK:-/tmp/gpu} PARTS=${PARTS:-/tmp/gpu/parts} ARCH=${CUDA_ARCH:-90}
HERE=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$WORK/done"

once() { # once NAME COMMAND...
    local name=$1; shift
    [ -e "$WORK/done/$name" ] && return
    local begin; begin=$(date +%s)
    "$@"
    touch "$WORK/done/$name"
    echo "$name: $(($(date +%s) - begin)) s"
}
install() { # install FOLDER WHEELS...
    local to=$1; shift
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$to" "$@"
}
unpack_llama() { mkdir -p "$WORK/llama.cpp" && tar -xJf "$PARTS/llama.tar.xz" -C "$WORK/llama.cpp"; }
build_llama() {
    cmake -S "$WORK/llama.cpp" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_CUDA=ON \
        -DCMAKE_CUDA_ARCHITECTURES="$ARCH" -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DGGML_CUDA_NCCL=OFF
    cmake --build "$WORK/build" --target llama-server llama-quantize
}
write_model() {
    PYTHONPATH="$WORK/llama.cpp/gguf-py" python3 "$HERE/make_model.py" write \
        "$PARTS/vocab.gguf" "$PARTS/tokenizer" "$WORK/model"
}
quantize() {
    "$WORK/build/bin/llama-quantize" "$WORK/model/f16.gguf" "$WORK/model/q4.part" Q4_K_M
    mv "$WORK/model/q4.part" "$WORK/model/q4_k_m.gguf"
}

for step in "${@:-all}"; do
    case $step in
    all) "$0" site llama model quantize ;;
    site)
        once loadgen install "$WORK/loadgen" "$PARTS"/loadgen/*.whl
        once vllm install "$WORK/vllm" "$PARTS"/vllm/*.whl
        ;;
    llama) once unpack unpack_llama && once build build_llama ;;
    model) once unpack unpack_llama && once write write_model ;;
    quantize) once quantize quantize ;;
    *) echo "no step $step: site, llama, model or quantize" >&2; exit 2 ;;
    esac
done
