"""Another job's traffic: plain TCP from one host to another, switched on and off by lines on stdin.

In:   `receive PORT`, or `send ADDRESS PORT FLOWS`, then lines `go` and `stop`.
Out:  bytes on the wire; the sender prints one JSON line for each `stop`: bytes and ns since `go`.
Idea: a few flows with a bounded window fill the uplink's queue without overflowing it.
Not:  pacing; TCP and the token bucket decide the rate.
"""

import json
import socket
import sys
import threading
import time

BLOCK = bytes(64 * 1024)
WINDOW_BYTES = 256 * 1024
"""Socket buffer of each flow; bounds what a flow can have in the uplink's queue."""


def receive(port: int) -> None:
    """Accept flows for ever and throw away what they bring."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        while True:
            flow, _ = server.accept()
            threading.Thread(target=drain, args=(flow,), daemon=True).start()


def drain(flow: socket.socket) -> None:
    """Read until the sender closes."""
    buffer = bytearray(256 * 1024)
    while flow.recv_into(buffer):
        pass


class Flow(threading.Thread):
    """One TCP connection that sends while `go` is set."""

    def __init__(self, address: str, port: int, go: threading.Event) -> None:
        """Connect; nothing is sent yet."""
        super().__init__(daemon=True)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WINDOW_BYTES)
        self.socket.connect((address, port))
        self.go = go
        self.sent_bytes = 0

    def run(self) -> None:
        """Send while allowed."""
        while True:
            self.go.wait()
            self.sent_bytes += self.socket.send(BLOCK)


def send(address: str, port: int, flows: int) -> None:
    """Obey `go` and `stop` until stdin ends."""
    go = threading.Event()
    running = [Flow(address, port, go) for _ in range(flows)]
    for flow in running:
        flow.start()
    print("ready", flush=True)
    start_ns = start_bytes = 0
    for line in sys.stdin:
        if line.strip() == "go":
            start_ns, start_bytes = time.monotonic_ns(), sum(flow.sent_bytes for flow in running)
            go.set()
        else:
            go.clear()
            sent = sum(flow.sent_bytes for flow in running) - start_bytes
            print(json.dumps({"sent_bytes": sent, "wall_ns": time.monotonic_ns() - start_ns}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
