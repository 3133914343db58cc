#!/bin/bash
# serve.sh [vllm] [eager] [llamacpp]: start them (all three), one after the other, on one GPU; they run on.
# Logs in $WORK/logs.
# vLLM in FP8 with CUDA graphs at port 8000 and with --enforce-eager at 8002, llama.cpp in Q4_K_M at 8001.
set -eu
WORK=${WORK:-/tmp/gpu} SLOTS=${SLOTS:-64} # of vLLM
mkdir -p "$WORK/logs"

ready() { # ready PORT SECONDS
    for _ in $(seq "$2"); do
        curl -sf "http://127.0.0.1:$1/health" >/dev/null && echo "$1 ready after ${SECONDS} s" && return
        sleep 1
    done
    echo "no server at port $1, see $WORK/logs" >&2
    return 1
}
vllm() { # vllm PORT ARGUMENTS...
    local port=$1; shift
    HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_USE_DEEP_GEMM=0 VLLM_USE_FLASHINFER_SAMPLER=0 PYTHONPATH="$WORK/vllm" \
        setsid python3 -m vllm.entrypoints.cli.main serve "$WORK/model/hf" --served-model-name qwen3-8b-shape \
        --host 127.0.0.1 --port "$port" --quantization fp8 --dtype float16 --max-model-len 4096 --max-num-seqs "$SLOTS" \
        --gpu-memory-utilization 0.28 --distributed-executor-backend uni "$@" \
        >"$WORK/logs/vllm-$port.log" 2>&1 </dev/null &
    ready "$port" 300
}
llamacpp() {
    setsid "$WORK/build/bin/llama-server" -m "$WORK/model/q4_k_m.gguf" --alias qwen3-8b-shape --host 127.0.0.1 \
        --port 8001 -ngl 99 -fa on -np 16 -c 65536 --cache-ram 0 --metrics >"$WORK/logs/llamacpp.log" 2>&1 </dev/null &
    ready 8001 120
}
for server in "${@:-all}"; do
    case $server in
    vllm) vllm 8000 ;;
    eager) vllm 8002 --enforce-eager ;;
    llamacpp) llamacpp ;;
    all) "$0" vllm eager llamacpp ;;
    *) echo "no server $server: vllm, eager or llamacpp" >&2; exit 2 ;;
    esac
done
