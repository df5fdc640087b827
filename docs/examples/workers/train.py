"""Linear regression by workers alone: each has all weights, and in every step the first adds up all gradients."""

import argparse
import socket
import time

import numpy as np

STEPS, BATCH, RATE = 300, 32, 0.1
WAIT_S = 60  # for the others, which may start later


def main():
    options = parse()
    host, _, port = options.first.rpartition(":")
    total = adder if options.index == 0 else asker
    add = total((host.strip("[]"), int(port)), options.workers - 1)
    weights, examples = np.zeros(2), np.random.RandomState(options.index)
    for _ in range(STEPS):
        x = examples.uniform(-1, 1, BATCH)
        wrong = weights[0] * x + weights[1] - (2 * x + 1)
        gradient = add(2 * np.array([np.mean(wrong * x), np.mean(wrong)]))
        weights -= RATE * gradient / options.workers
    print(f"worker {options.index}: step {STEPS}, loss {np.mean(wrong**2):.6f}, slope {weights[0]:.3f}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=int, required=True, help="which worker this is")
    parser.add_argument("--workers", type=int, required=True, help="how many there are")
    parser.add_argument("--first", required=True, help="where the first one listens, HOST:PORT")
    return parser.parse_args()


def adder(address, others):
    """Return the first worker's function for a step: it adds all gradients, and sends the sum to the others."""
    server = socket.socket(socket.getaddrinfo(*address)[0][0])
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(WAIT_S)
    server.bind(address)
    server.listen(others)
    streams = [server.accept()[0].makefile("rwb") for _ in range(others)]
    server.close()  # a restarted worker waits for the next first worker

    def add(gradient):
        gradient = gradient + sum(received(stream) for stream in streams)
        for stream in streams:
            send(stream, gradient)
        return gradient

    return add


def asker(address, _):
    """Return the other workers' function for a step: it sends a gradient to the first worker, and receives the sum."""
    stream = dial(address).makefile("rwb")

    def add(gradient):
        send(stream, gradient)
        return received(stream)

    return add


def dial(address):
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection(address, timeout=WAIT_S)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def send(stream, gradient):
    stream.write(gradient.tobytes())
    stream.flush()


def received(stream):
    return np.frombuffer(stream.read(16))  # two numbers of 8 bytes; fewer, an error, if the other worker has exited


if __name__ == "__main__":
    main()
