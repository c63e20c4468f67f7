"""A server of gRPC in the kubelet's place: `python kubelet.py SOCKET DELAY CODE <ANSWER`.

A process of its own, which its test ends: gRPC's threads do not survive that other tests of the
same process fork.
"""

from __future__ import annotations

import sys
import time
from concurrent import futures
from typing import Any

import grpc


def main(path: str, delay: float, code: str) -> None:
    """Serve the bytes of standard input after `delay` seconds, or the status `code` if any."""
    answer = sys.stdin.buffer.read()

    def listed(_: bytes, context: Any) -> bytes:
        time.sleep(delay)
        if code:
            context.abort(grpc.StatusCode[code], "no")
        return answer

    server = grpc.server(futures.ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(listed)
    service = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler})
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
