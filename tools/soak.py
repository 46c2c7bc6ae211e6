#!/usr/bin/env python3
"""Sends a server thousands of requests, many of them bad, and looks whether it stays well.

  tools/soak.py --program build/release/fathom --model models/demo --requests 10000

A mix from a fixed seed: answers streamed and not, hang-ups before, during and after, bodies that
are no JSON, cut or too long, slow senders and slow readers. At the end no slot may be taken, the
process must be the same and healthy, and its resident memory within 5 % of what it was after the
first tenth. Loopback only. Exit status 0 when all holds.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import time

CLIENTS = 16
RESET = struct.pack("ii", 1, 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/fathom")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Server:
    def __init__(self, program, model):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FATHOM_")}
        self.process = subprocess.Popen(
            [program, "serve", "--model", model, "--port", "0", "--max-queue", "64",
             "--log-level", "warning"], stdout=subprocess.PIPE, text=True, env=clean)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def rss_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def status_of(self, bytes_to_send):
        with self.connect() as connection:
            connection.sendall(bytes_to_send)
            reply = read_all(connection)
        return int(reply[9:12]) if len(reply) > 12 else 0


def read_all(connection):
    reply = b""
    while part := connection.recv(65536):
        reply += part
    return reply


def post(body, length=None, close=True):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    end = "Connection: close\r\n" if close else ""
    return (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{end}"
            f"Content-Type: application/json\r\n"
            f"Content-Length: {len(raw) if length is None else length}\r\n\r\n").encode() + raw


def question(rng, **fields):
    words = " ".join(str(rng.randrange(1000)) for _ in range(rng.randrange(1, 60)))
    return {"messages": [{"role": "user", "content": words}], "temperature": 1,
            "max_tokens": rng.randrange(1, 12), "stream": rng.random() < 0.5, **fields}


def hang_up(connection, rng):
    if rng.random() < 0.5:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


# --- one request of each kind; each returns the statuses that are right -------------------------

def ordinary(server, rng):
    return server.status_of(post(question(rng))), (200, 429)


def leaves_early(server, rng):
    with server.connect() as connection:
        connection.sendall(post(question(rng, max_tokens=2000, ignore_eos=True)))
        time.sleep(rng.random() * 0.05)
        if rng.random() < 0.5:
            connection.settimeout(0.2)
            try:
                connection.recv(300)
            except TimeoutError:
                pass
        hang_up(connection, rng)
    return 0, (0,)


def leaves_in_the_body(server, rng):
    whole = post(question(rng))
    with server.connect() as connection:
        connection.sendall(whole[:rng.randrange(len(whole))])
        hang_up(connection, rng)
    return 0, (0,)


def sends_nonsense(server, rng):
    body = rng.choice([b"", b"{", b"[]", b"null", b'{"messages":5}', b"\xff\xfe", b'{"a":' * 500,
                       bytes(rng.randrange(256) for _ in range(100)), b'{"messages":[]}'])
    return server.status_of(post(body)), (400,)


def speaks_no_http(server, rng):
    noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200)))
    with server.connect() as connection:
        connection.sendall(noise + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)
    return 0, (0,)


def claims_too_much(server, rng):
    return server.status_of(post(b"", length=1 << 40)), (413,)


def sends_slowly(server, rng):
    whole = post(question(rng))
    with server.connect() as connection:
        for begin in range(0, len(whole), 64):
            connection.sendall(whole[begin:begin + 64])
            time.sleep(0.002)
        return int(read_all(connection)[9:12]), (200, 429)


def reads_slowly(server, rng):
    with server.connect() as connection:
        connection.sendall(post(question(rng, stream=True, max_tokens=40)))
        first = connection.recv(1)
        while connection.recv(40):
            time.sleep(0.001)
        return (200 if first == b"H" else 0), (200,)


KINDS = [(ordinary, 40), (leaves_early, 20), (leaves_in_the_body, 10), (sends_nonsense, 12),
         (speaks_no_http, 5), (claims_too_much, 3), (sends_slowly, 5), (reads_slowly, 5)]


def one(server, seed):
    rng = random.Random(seed)
    kind = rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
    try:
        status, right = kind(server, rng)
    except (ConnectionError, BrokenPipeError):
        return None if kind is not ordinary else f"{kind.__name__} (seed {seed}): connection lost"
    return None if status in right else f"{kind.__name__} (seed {seed}): status {status}"


def wait_until_ready(server):
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    end = time.monotonic() + 120
    while server.status_of(health) != 200:
        if time.monotonic() > end or server.process.poll() is not None:
            sys.exit("soak: the server did not get ready")
        time.sleep(0.1)


def run(server, count, seed):
    """The first ten complaints and the resident memory after a tenth of the requests."""
    complaints, rss = [], 0
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(one, server, seed * 1_000_003 + i) for i in range(count)]
        for index, job in enumerate(jobs):
            if complaint := job.result():
                complaints.append(complaint)
            if index == max(count // 10, 50):
                rss = server.rss_bytes()
    return complaints, rss


def main():
    options = arguments()
    server = Server(options.program, options.model)
    wait_until_ready(server)
    # One long answer first, so that buffers have the size they will keep.
    server.status_of(post({"messages": [{"role": "user", "content": "1 " * 300}],
                           "max_tokens": 200, "ignore_eos": True}))
    descriptors = server.descriptors()
    start = time.monotonic()
    complaints, rss_before = run(server, options.requests, options.seed)
    seconds = time.monotonic() - start

    end = time.monotonic() + 10  # everything that was left behind must be free by now
    while server.descriptors() > descriptors and time.monotonic() < end:
        time.sleep(0.1)
    last = server.status_of(post(question(random.Random(0), max_tokens=2)))
    growth = server.rss_bytes() / rss_before - 1
    if last != 200:
        complaints.append(f"the last ordinary request: status {last}")
    if server.descriptors() > descriptors:
        complaints.append(f"{server.descriptors()} descriptors open, {descriptors} at the start")
    if abs(growth) > 0.05:
        complaints.append(f"resident memory changed by {growth:+.1%}, at most 5 % is right")
    server.process.terminate()
    code = server.process.wait(60)
    if code != 0:
        complaints.append(f"exit status {code}")
    print(f"{options.requests} requests in {seconds:.1f} s, memory {growth:+.1%} "
          f"from {rss_before >> 20} MiB, {len(complaints)} complaints")
    for complaint in complaints[:10]:
        print(" ", complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
