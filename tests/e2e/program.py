"""Starts `fathom serve` for a test and asks it by raw socket, urllib or the openai SDK."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FATHOM_PROGRAM", str(ROOT / "build/release/fathom"))
MODEL = os.environ.get("E2E_MODEL", str(ROOT / "models/demo"))


def model_or_skip():
    """The demo model's directory; skips the test where it is not there."""
    if not pathlib.Path(MODEL, "config.json").is_file():
        raise unittest.SkipTest(f"SKIP: no model at {MODEL}")
    return MODEL


def environment():
    """This process's environment without the variables that are meant for the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith("FATHOM_")}


class Server:
    """A `fathom serve` on a free port, ready when made."""

    def __init__(self, *options, model=None, wait=True):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--model", model or model_or_skip(), "--port", "0", *options],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment())
        line = self.process.stdout.readline()
        found = re.match(r"listening on http://.*:(\d+)$", line.strip())
        if not found:
            self.process.wait(10)
            raise RuntimeError(f"the server did not start: {line!r} {self.log_text()}")
        self.port = int(found.group(1))
        self.url = f"http://127.0.0.1:{self.port}"
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while self.get("/health")[0] != 200:
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"the model did not load: {self.log_text()}")
            time.sleep(0.05)

    def log_text(self):
        self.log.seek(0)
        return self.log.read()

    def rss_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def ask(self, method, path, body=None, headers=None, seconds=60):
        """(status, body bytes, headers)."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        if data is not None and "Content-Type" not in request.headers:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=seconds) as reply:
                return reply.status, reply.read(), reply.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers

    def get(self, path):
        return self.ask("GET", path)

    def chat(self, messages, **fields):
        """The JSON of an answer; fails when the status is not 200."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        status, body, _ = self.ask("POST", "/v1/chat/completions", {"messages": messages, **fields})
        if status != 200:
            raise AssertionError(f"status {status}: {body.decode(errors='replace')}")
        return json.loads(body)

    def sdk(self, **options):
        import openai
        return openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, **options)

    def stop(self, how=signal.SIGTERM):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()
