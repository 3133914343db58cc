#!/bin/bash
# experiment.sh reference|eager|sweep: one part of the experiment, with nothing but the product's own commands.
# Runs go to $WORK/runs; the servers' own counters before and after each part to $WORK/logs.
set -eu
WORK=${WORK:-/tmp/gpu} RUNS=${RUNS:-$WORK/runs}
cd "$(dirname "$0")/../.."
export PYTHONPATH="$WORK/loadgen:$PWD${PYTHONPATH:+:$PYTHONPATH}"
VLLM=vllm=vllm:http://127.0.0.1:8000 EAGER=vllm-eager=vllm:http://127.0.0.1:8002 LLAMA=llamacpp=llamacpp:http://127.0.0.1:8001
loadgen() { python3 -m loadgen.cli "$@"; }
counters() {
    for port in 8000 8001 8002; do
        curl -sf "http://127.0.0.1:$port/metrics" >"$WORK/logs/metrics-$port-$1.txt" || true
    done
}

counters "$1-before"
case $1 in
reference) loadgen run reference --engine $VLLM --engine $LLAMA --cooldown 1 --gpu on --runs-dir "$RUNS/reference" ;;
eager) # the same, with shorter answers: without CUDA graphs a token takes six times as long
    loadgen run reference --engine $VLLM --engine $EAGER --cooldown 1 --gpu on --turn-requests 4 --output-tokens 64 \
        --runs-dir "$RUNS/eager" ;;
sweep) loadgen sweep --users 1,4,16,64 --all --engine $VLLM --engine $LLAMA --cooldown 1 --gpu on --output-tokens 128 \
    --requests-per-user 2 --runs-dir "$RUNS/sweep" ;;
*) echo "reference, eager or sweep?" >&2; exit 2 ;;
esac || echo "exit code $?"
counters "$1-after"
