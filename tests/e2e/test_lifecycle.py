"""Start, keys, queue, hang-ups, drain, soak: the server as a process (HTTP API section 15, L)."""

import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from program import PROGRAM, ROOT, Server, environment, model_or_skip

LONG = {"max_tokens": 3000, "temperature": 0, "ignore_eos": True, "stream": True}
# Kernels slow enough for an answer of LONG to outlast a test on any machine.
SLOW = ("--isa", "portable")


def request(path, body, more=b""):
    raw = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(raw)}\r\n").encode() + more + b"\r\n" + raw


def user(text):
    return [{"role": "user", "content": text}]


def open_stream(server):
    """A connection on which an endless answer has begun: one letter again and again, for whatever
    else the model says, it may come to an end of its own.
    """
    letter = json.loads(server.ask("POST", "/tokenize", {"content": "a"})[1])["tokens"][0]
    body = {"messages": user("hi"), "logit_bias": {str(letter): 100}, **LONG}
    connection = socket.create_connection(("127.0.0.1", server.port), 20)
    connection.sendall(request("/v1/chat/completions", body))
    got = b""
    while got.count(b"data: ") < 3:
        part = connection.recv(65536)
        assert part, got
        got += part
    return connection


class Lifecycle(unittest.TestCase):
    def test_l1_hang_ups_free_the_engine(self):
        with Server(*SLOW) as server:
            for reset in (False, True):
                connection = open_stream(server)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()
                start = time.monotonic()
                server.chat("hi", max_tokens=2)
                self.assertLess(time.monotonic() - start, 5)

    def test_sch1_the_hang_up_tool_passes(self):
        with Server("--allowed-host", "x") as server:
            result = subprocess.run(
                [sys.executable, str(ROOT / "tests/data/cases/gen/sch1_hang_up.py"), server.url],
                capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_l2_a_full_queue_says_when_to_come_back(self):
        with Server(*SLOW, "--max-queue", "0") as server:
            connection = open_stream(server)
            status, raw, headers = server.ask("POST", "/v1/chat/completions",
                                              {"messages": user("hi")})
            self.assertEqual(status, 429, raw)
            self.assertIn(b"queue_full", raw)
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            connection.close()

    def test_l4_sigterm_drains(self):
        server = Server(*SLOW, "--drain-seconds", "1")
        connection = open_stream(server)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        status, raw, _ = server.ask("GET", "/health")
        self.assertEqual(status, 503, raw)
        self.assertIn(b"shutting_down", raw)
        got = b""
        while part := connection.recv(65536):
            got += part
        self.assertTrue(b"shutting_down" in got or b"[DONE]" in got, got[-300:])
        self.assertEqual(server.process.wait(20), 0)
        self.assertNotIn("ERROR", server.log_text())

    def test_l4_a_second_signal_ends_at_once(self):
        server = Server(*SLOW, "--drain-seconds", "600")
        connection = open_stream(server)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        self.assertNotEqual(server.process.wait(5), 0)
        connection.close()

    def test_l6_clients_never_see_each_others_answers(self):
        with Server() as server:
            def ask(index):
                answer = server.chat(f"marker {index}", max_tokens=6, temperature=0)
                return index, answer["id"], answer["usage"]["prompt_tokens"]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(ask, range(100)))
            self.assertEqual(len({a[1] for a in answers}), 100)
            for index, _, tokens in answers[::10]:
                _, raw, _ = server.ask("POST", "/tokenize", {"messages": user(f"marker {index}")})
                self.assertEqual(json.loads(raw)["count"], tokens)

    def test_heartbeats_while_waiting(self):
        with Server(*SLOW, "--sse-ping-interval", "0.2") as server:
            connection = open_stream(server)
            waiting = socket.create_connection(("127.0.0.1", server.port), 20)
            waiting.sendall(request("/v1/chat/completions",
                                    {"messages": user("hi"), "stream": True, "max_tokens": 1}))
            time.sleep(1)
            got = waiting.recv(65536)
            self.assertTrue(got.startswith(b"HTTP/1.1 200"), "before the engine is free")
            self.assertGreaterEqual(got.count(b": ping\n\n"), 2)
            connection.close()
            waiting.close()

    def test_soak_short(self):
        result = subprocess.run(
            [sys.executable, str(ROOT / "tools/soak.py"), "--program", PROGRAM, "--model",
             model_or_skip(), "--requests", "300"], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr[-2000:])


class Start(unittest.TestCase):
    def refused(self, *options):
        words = [PROGRAM, "serve", "--model", model_or_skip(), "--port", "0", *options]
        result = subprocess.run(words, capture_output=True, text=True, env=environment(),
                                timeout=30)
        self.assertNotEqual(result.returncode, 0)
        self.assertTrue(result.stderr.startswith("fathom: "), result.stderr)
        return result.stderr

    def test_keys_that_are_none_are_refused(self):
        self.assertIn("--api-key", self.refused("--api-key", ""))
        self.assertIn("API key", self.refused("--api-key", "short"))
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as empty:
            self.assertIn("holds no key", self.refused("--api-key-file", empty.name))

    def test_an_open_address_needs_a_key(self):
        self.assertIn("--insecure-no-auth", self.refused("--host", "0.0.0.0"))

    def test_a_model_that_is_none_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([PROGRAM, "serve", "--model", folder, "--port", "0"],
                                    capture_output=True, text=True, env=environment(), timeout=30)
            self.assertEqual(result.returncode, 1)
            self.assertIn("config.json", result.stderr)

    def test_unknown_names_are_answered_with_the_nearest(self):
        for words, wanted in ((["srve"], "did you mean serve?"),
                              (["serve", "--prot", "1"], "did you mean --port?")):
            result = subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                                    env=environment(), timeout=10)
            self.assertEqual(result.returncode, 2)
            self.assertIn(wanted, result.stderr)
        result = subprocess.run([PROGRAM, "run"], capture_output=True, text=True, timeout=10,
                                env={**environment(), "FATHOM_MODLE": "x"})
        self.assertIn("did you mean FATHOM_MODEL?", result.stderr)

    def test_keys_from_a_file_are_read_again(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("# ours\r\n\r\nfirst-key-0\r\n")
            keys.flush()
            with Server("--api-key-file", keys.name) as server:
                def status(key):
                    return server.ask("GET", "/v1/models",
                                      headers={"Authorization": "Bearer " + key})[0]
                self.assertEqual((status("first-key-0"), status("second-key-0")), (200, 401))
                pathlib.Path(keys.name).write_text("second-key-0\n")
                server.process.send_signal(signal.SIGHUP)
                end = time.monotonic() + 5
                while status("second-key-0") != 200 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual((status("first-key-0"), status("second-key-0")), (401, 200))
                self.assertNotIn("second-key-0", server.log_text())


class CommandLine(unittest.TestCase):
    def run_program(self, *words, seconds=60, **options):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=seconds,
                              env=environment(), **options)

    def test_run_answers_on_standard_output(self):
        words = ("run", "--model", model_or_skip(), "--prompt", "hi", "--temperature", "0",
                 "--max-tokens", "8")
        plain = self.run_program(*words)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        answer = json.loads(self.run_program(*words, "--json").stdout)
        self.assertEqual(answer["content"] + "\n", plain.stdout)
        self.assertLessEqual(answer["usage"]["completion_tokens"], 8)

    def test_a_full_standard_output_is_a_failure(self):
        for words in (("run", "--model", model_or_skip(), "--prompt", "hi", "--max-tokens", "4"),
                      ("--help",), ("run", "--help"), ("--version",)):
            with self.subTest(words[0]), open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=60, env=environment())
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("standard output could not be written", result.stderr)

    def test_a_model_without_room_for_an_answer_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in pathlib.Path(model_or_skip()).iterdir():
                (pathlib.Path(folder) / file.name).symlink_to(file)
            config = pathlib.Path(folder) / "config.json"
            text = config.read_text().replace('"max_position_embeddings": 4096',
                                              '"max_position_embeddings": 1')
            config.unlink()
            config.write_text(text)
            result = self.run_program("run", "--model", folder, "--prompt", "hi")
            self.assertEqual(result.returncode, 1)
            self.assertIn("max_position_embeddings 1, wanted at least 2", result.stderr)

    def test_the_help_keeps_names_and_texts_apart(self):
        for command in ("run", "serve", "verify"):
            for line in self.run_program(command, "--help").stdout.splitlines():
                if line.startswith("  --"):
                    self.assertRegex(line, r"^  --[a-z-]+( [^ ]+)?(  +[^ ].*)?$")

    def test_errors_name_the_thing_the_wanted_and_the_found(self):
        model = ("--model", model_or_skip())
        with tempfile.TemporaryDirectory() as folder:
            cases = (
                (("run", *model, "--prompt", "x", "--seed", "1" + 20 * "0"),
                 "--seed: wanted a whole number from 0 to 9200000000000000000, found"),
                (("run", *model, "--prompt", "x", "--draft", "fast"),
                 '--draft: wanted auto, off or 0 to 64, found "fast"'),
                (("serve", *model, "--api-key-file", folder),
                 f"{folder}: wanted a file of keys, found a folder"),
                (("verify", *model, "--golden", folder), f"{folder}/index.json: No such file"),
                (("bench", "server", *model, "--json", f"{folder}/missing/x.json"),
                 f"there is no folder {folder}/missing"))
            for command, wanted in cases:
                with self.subTest(command[0]):
                    result = self.run_program(*command)
                    self.assertIn(result.returncode, (1, 2))
                    self.assertIn(wanted, result.stderr)

    def test_words_that_an_option_does_not_take_are_wrong_usage(self):
        ask = ("run", "--model", model_or_skip(), "--prompt", "x")
        serve = ("serve", "--model", model_or_skip(), "--port", "0")
        cases = (
            ((*ask, "--policy", "nope"), '--policy: wanted reference, f32 or smooth, found "nope"'),
            ((*ask, "--isa", "nope"), "--isa: wanted avx512, avx2, portable or ref"),
            ((*ask, "--effort", "nope"), "--effort: wanted low, high, max or 1 to 100"),
            ((*ask, "--effort", "101"), "--effort: wanted low, high, max or 1 to 100"),
            ((*ask, "--effort", ""), 'found ""'),
            ((*ask, "--log-level", "nope"), "--log-level: wanted error, warning, info or debug"),
            ((*serve, "--default-thinking", "nope"), "--default-thinking: wanted on or off"),
            ((*serve, "--reasoning-field", "x"), "wanted reasoning_content, reasoning or both"),
            (("bench", "gemv", "--isa", "nope"), "--isa: wanted"),
            ((*serve, "--host", "nope"), "--host: wanted an IPv4 or IPv6 address or localhost"),
            (("run", "--prompt", "x"), "no model given"),
            (("chat",), "no model given"),
            (("serve",), "no model given"),
            (("run", "--model", "x"), "no --prompt given"))
        for command, wanted in cases:
            with self.subTest(" ".join(command)):
                result = self.run_program(*command)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(wanted, result.stderr)

    def test_inspect_names_a_missing_tokenizer(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in pathlib.Path(model_or_skip()).iterdir():
                if file.name != "tokenizer.json":
                    (pathlib.Path(folder) / file.name).symlink_to(file)
            result = self.run_program("inspect", folder)
            self.assertIn("tokenizer.json: no such file", result.stdout)

    def test_pictures_that_are_none_are_refused_by_name(self):
        for path, wanted in (("/dev/zero", "are no picture"),
                             (tempfile.gettempdir(), "found a folder")):
            result = self.run_program("run", "--model", model_or_skip(), "--prompt", "hi",
                                      "--image", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(path, result.stderr)
            self.assertIn(wanted, result.stderr)

    def test_raw_continues_the_rendered_prompt(self):
        prompt = ("<\uff5cbegin\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>hi"
                  "<\uff5cAssistant\uff5c></think>")
        options = ("--model", model_or_skip(), "--temperature", "0", "--max-tokens", "8")
        raw = self.run_program("run", "--raw", "--prompt", prompt, *options)
        chat = self.run_program("run", "--prompt", "hi", *options)
        self.assertEqual(raw.stdout, chat.stdout)

    def test_chat_talks_and_ctrl_c_stops_only_the_answer(self):
        process = subprocess.Popen(
            [PROGRAM, "chat", "--model", model_or_skip(), "--temperature", "1", "--max-tokens",
             "3000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment())
        process.stdin.write(b"hi\n")
        process.stdin.flush()
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        process.stdin.write(b"again\n/quit\n")
        process.stdin.flush()
        process.stdin.close()
        self.assertEqual(process.wait(60), 0)
        process.stdout.close()

    def test_tokenize_lines(self):
        result = self.run_program("tokenize", model_or_skip(), "--jsonl", input='"hi"\n"\\u00e9"\n')
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(lines), 2)
        self.assertTrue(all(isinstance(i, int) for i in lines[0]))

    def test_version_says_what_is_not_built(self):
        text = self.run_program("--version").stdout
        self.assertIn("gpu: not built", text)
        self.assertIn("reference", text)

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("SKIP: no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE,
                                    env=environment(), timeout=10)
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
