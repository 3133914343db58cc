"""llama.cpp's own HTTP server (llama-server's code, in the xllamacpp wheel), until SIGTERM.

Run with the Python of llama.cpp's environment. Context is divided by the slots, as with llama-server's -np.
"""

import argparse
import signal
import threading
import types

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--context", type=int, default=16384, help="tokens, of all slots together")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alias", default="smollm2")
    args = parser.parse_args()

    stop = threading.Event()

    def on_signal(_signum: int, _frame: types.FrameType | None) -> None:
        stop.set()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, on_signal)

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.model_alias = [args.alias]
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_parallel = args.slots
    params.n_ctx = args.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    # A bare wait() would keep Python from running the signal handler while native threads hold the server up.
    while not stop.wait(0.25):
        pass


if __name__ == "__main__":
    main()
