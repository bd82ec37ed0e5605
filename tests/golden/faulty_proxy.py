"""A TCP proxy that breaks connections, for tests/host/buckets_peer.sh; of the standard library.

    python faulty_proxy.py HOST PORT SEED

Prints its own port, and serves until its input ends; then prints what it did. By the seed, every third connection or so is reset when it is
made, cut after some bytes of requests or of answers, or stands still for two seconds and is cut then.
"""
import collections
import random
import socket
import struct
import sys
import threading
import time

host, port, choices = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
done = collections.Counter()


def reset(*connections):
    """RST in place of FIN: what was sent may be lost, too."""
    for one in connections:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()


def pump(source, sink, left, fate, both):
    """Copies until an end, or until `left` bytes have gone through."""
    try:
        while piece := source.recv(min(left, 1 << 16)):
            sink.sendall(piece)
            left -= len(piece)
            if left == 0:
                if fate == "stands still":
                    time.sleep(2)
                return reset(*both)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client, fate, most):
    done[fate] += 1
    if fate == "reset":
        return reset(client)
    server = socket.create_connection((host, port))
    both, endless = (client, server), 1 << 62
    up, down = (endless if fate in ("passed", "answer cut") else most), (most if fate == "answer cut" else endless)
    threading.Thread(target=pump, args=(server, client, down, fate, both), daemon=True).start()
    pump(client, server, up, fate, both)


listener = socket.create_server(("127.0.0.1", 0))


def accept():
    while True:
        client, _ = listener.accept()
        fate = choices.choice(["passed"] * 8 + ["reset", "request cut", "answer cut", "stands still"])
        threading.Thread(target=serve, args=(client, fate, choices.randrange(1, 60_000)), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
print(*(f"{count} {fate}" for fate, count in sorted(done.items())), sep=", ", flush=True)
