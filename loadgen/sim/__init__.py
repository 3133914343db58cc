"""Simulated engines: HTTP servers that answer as vLLM and llama.cpp do, without a model or a GPU.

- model, kvcache, presets: how long things take (pure)
- tokens, text: what is said (pure)
- request, errors, wire, vllm*, llamacpp*, pages, metrics: what goes over the wire (pure)
- faults, framing: what can go wrong with it (pure)
- connection, answering, output, server, loop, main: sockets and the clock
- truthlog: what was really sent, and when
- launch: SimProcess, an engine in a process of its own
"""
