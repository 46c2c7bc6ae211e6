#!/usr/bin/env python3
"""Held-out accuracy of the demo model through the product.

    demo_eval.py [-n 100] [--program build/release/fathom] [--model models/demo] [--url http://...]

Without --url it starts `fathom serve` itself on a free port and stops it at the end. Tool calls go
through `fathom run --raw` on the rendered prompt. Every sample is new: its seed is not used in
training, number pairs and tool arguments are drawn afresh. Half of the pictures are drawn by plain
Pillow calls (hard edges), half by the training renderer with other styles. Temperature 0.
"""

import argparse
import base64
import io
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_demo"))
import pictures  # noqa: E402
import prompt  # noqa: E402
import tasks  # noqa: E402
from PIL import Image, ImageDraw  # noqa: E402

SEED = 424200000
RECALL_WORDS = 1080  # about 1,500 tokens of the demo's tokenizer


# ------------------------------------------------------------------------------------------------
# - pictures


def plain_drawing(sc):
    """Draws a scene with Pillow's own shapes, no antialiasing: what a short script of a user
    would do.
    """
    im = Image.new("RGB", (sc["w"], sc["h"]), sc["back"])
    d = ImageDraw.Draw(im)
    for s in sc["shapes"]:
        box = (s["x"] - s["rx"], s["y"] - s["ry"], s["x"] + s["rx"], s["y"] + s["ry"])
        if s["kind"] in ("circle", "ellipse"):
            d.ellipse(box, fill=s["rgb"])
        elif s["kind"] in ("square", "rectangle"):
            d.rectangle(box, fill=s["rgb"])
        else:
            pts = pictures.outline(dict(s, form=0.3))
            d.polygon([(s["x"] + x * s["rx"], s["y"] + y * s["ry"]) for x, y in pts], fill=s["rgb"])
    return im


def new_picture(rng, n=None):
    """A scene of 64 to 4,000 pixels a side and its drawing."""
    while True:
        w = int(2 ** rng.uniform(6, 11.97))
        h = int(min(4000, max(64, w * 2 ** rng.uniform(-1, 1))))
        sc = pictures.scene(rng, n=n, size=(w, h), tries=10)
        if sc is None:
            continue
        if rng.random() < 0.5 and all(
            pictures.contrast(s["rgb"], sc["back"]) > 110 for s in sc["shapes"]
        ):
            return sc, plain_drawing(sc)
        if w * h > 3e6:
            sc["style"]["aa"] = 1
        return sc, pictures.render(sc)


def data_url(im):
    b = io.BytesIO()
    im.save(b, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(b.getvalue()).decode()


# ------------------------------------------------------------------------------------------------
# - asking


class Server:
    """A Fathom server's chat completions."""

    def __init__(self, url, timeout=300):
        self.url, self.timeout = url.rstrip("/"), timeout
        with urllib.request.urlopen(self.url + "/v1/models", timeout=timeout) as r:
            self.model = json.load(r)["data"][0]["id"]

    def ask(self, text, im=None, max_tokens=160):
        """The answer's text, or "" with the error on stderr."""
        content = text
        if im is not None:
            content = [
                {"type": "image_url", "image_url": {"url": data_url(im)}},
                {"type": "text", "text": text},
            ]
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        req = urllib.request.Request(
            self.url + "/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(req, timeout=self.timeout) as r:
                return json.load(r)["choices"][0]["message"]["content"] or ""
        except urllib.error.HTTPError as e:
            print("HTTP %d: %s" % (e.code, e.read()[:300]), file=sys.stderr)
            return ""


class Raw:
    """`fathom run --raw` on a rendered prompt."""

    def __init__(self, program, model):
        self.command = [
            program,
            "run",
            "--model",
            model,
            "--raw",
            "--temperature",
            "0",
            "--max-tokens",
            "160",
        ]

    def ask(self, text):
        p = subprocess.run(self.command + ["--prompt", text], capture_output=True, text=True)
        if p.returncode:
            print(p.stderr[-500:], file=sys.stderr)
        return p.stdout


# ------------------------------------------------------------------------------------------------
# - judging


def tidy(text):
    return "\n".join(line.strip() for line in text.strip().splitlines() if line.strip())


def same(answer, want):
    return tidy(answer) == tidy(want)


def number_in(text):
    m = re.search(r"\b(no|\d+)\b", text)
    return m and (0 if m.group(1) == "no" else int(m.group(1)))


def same_number(answer, want):
    return number_in(answer) == number_in(want)


def places_in(text):
    names = sorted(pictures.PLACES, key=len, reverse=True)
    return re.findall("|".join(names), text)


def same_places(answer, want):
    return places_in(answer) == places_in(want)


def colours_in(text):
    return re.findall("|".join(pictures.NAMES), text)


def same_colours(answer, want):
    return colours_in(answer) == colours_in(want)


def same_result(answer, want):
    last = re.findall(r"-?\d+", answer)
    return bool(last) and last[-1] == re.findall(r"-?\d+", want)[-1]


INVOKE = re.compile(r'<｜DSML｜ invoke name="([^"]*)">(.*?)</｜DSML｜ invoke>', re.S)
PARAMETER = re.compile(
    r'<｜DSML｜ parameter name="([^"]*)" string="(true|false)">' r"(.*?)</｜DSML｜ parameter>", re.S
)


def calls_in(text):
    """[(name, [(parameter, string flag, value)])] of the tool calls in raw model text."""
    return [(name, PARAMETER.findall(body)) for name, body in INVOKE.findall(text)]


# ------------------------------------------------------------------------------------------------
# - tasks


def picture_task(what, counts, judge):
    def run(rng, server, _):
        sc, im = new_picture(rng, rng.choice(counts))
        _, q, a, _ = tasks.picture_question(rng, sc["shapes"], what)
        got = server.ask(q, im)
        return judge(got, a), q, a, got, (sc["w"], sc["h"])

    return run


def text_task(make, judge):
    def run(rng, server, _):
        t = make(rng)[0]
        got = server.ask(t["user"])
        return judge(got, t["answer"]), t["user"][-60:], t["answer"], got, None

    return run


def recall_task(rng, server, _):
    turn = tasks.recall_turns(rng, RECALL_WORDS, keys=14, questions=1)[0]
    got = server.ask(turn["user"])
    return same(got, turn["answer"]), turn["user"][-40:], turn["answer"], got, None


def tool_task(rng, _, raw):
    """The call itself; then, given the right call and a result, the answer is judged by the
    next sample kind.
    """
    if raw is None:
        return None
    names = rng.sample(list(tasks.TOOLS), rng.randint(1, 3))
    turn = tasks.tool_turns(rng, names, 1)[0]
    doc = prompt.conversation("tool", [turn], tools=[tasks.TOOLS[k][1] for k in names])
    full = doc.text()
    call = prompt.call_text(turn["call"][0], turn["call"][1])
    head, tail = full.split(call, 1)
    got = raw.ask(head)
    ok = calls_in(got) == calls_in(call)
    if ok:
        second = tail[: tail.rindex(turn["answer"])]
        got = raw.ask(head + call + second)
        ok = turn["answer"] in got
    return ok, turn["user"], turn["answer"], got, None


TASKS = [
    ("list, 1-3 shapes", 0.85, 0.97, picture_task("lines", [1, 2, 3], same)),
    ("list, 4 shapes", 0.75, 0.93, picture_task("lines", [4], same)),
    ("sentence, 1-4 shapes", None, None, picture_task("sentence", [1, 2, 3, 4], same)),
    ("count", 0.90, 0.97, picture_task("count", [1, 2, 3, 4], same_number)),
    ("colour", 0.95, 0.99, picture_task("colour", [1, 2, 3, 4], same_colours)),
    ("position", 0.93, 0.98, picture_task("where", [1, 2, 3, 4], same_places)),
    (
        "arithmetic",
        0.85,
        0.98,
        text_task(lambda r: tasks.arithmetic_turns(r, 1, False, held=True), same_result),
    ),
    ("recall, 1,500 tokens", 0.90, 0.97, recall_task),
    ("FAQ", 1.00, 1.00, text_task(lambda r: tasks.faq_turns(r, 1), same)),
    ("FAQ, new wording", None, None, text_task(lambda r: tasks.faq_turns(r, 1, held=True), same)),
    ("out of scope, new", None, None, text_task(lambda r: tasks.out_turns(r, 1, held=True), same)),
    ("tool call and answer", 0.95, 0.99, tool_task),
]


class Served:
    """A server of our own, for as long as the `with` block lasts."""

    def __init__(self, program, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % port
        self.process = subprocess.Popen(
            [program, "serve", "--model", model, "--port", str(port)], stdout=subprocess.DEVNULL
        )

    def __enter__(self):
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5)
                return self.url
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("the server ended with status %d" % self.process.returncode)
                time.sleep(0.1)
        sys.exit("the server did not answer within a minute")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def one_task(args, k, server, raw):
    """Runs task k and returns its row of the table."""
    name, target, later, run = TASKS[k]
    good, n, start = 0, 0, time.time()
    for i in range(args.n):
        out = run(random.Random(SEED + 1000003 * k + i), server, raw)
        if out is None:
            break
        n += 1
        good += bool(out[0])
        if args.wrong and not out[0]:
            print("  wrong: %s | wanted %r | got %r %s" % (*out[1:3], out[3][:200], out[4] or ""))
    goal = "-" if target is None else "%.2f > %.2f" % (target, later)
    share = "%.3f" % (good / n) if n else "not run"
    took = time.time() - start
    print("%-24s %5d  %8s  %12s   %.1f s" % (name, n, share, goal, took), flush=True)
    return dict(task=name, n=n, accuracy=good / n if n else None, target=target, later=later)


def evaluate(args, url):
    server, raw = Server(url), None
    if os.path.exists(args.program):
        raw = Raw(args.program, args.model)
    print("%-24s %5s  %8s  %12s" % ("task", "n", "accuracy", "target"))
    chosen = [k for k, t in enumerate(TASKS) if not args.only or args.only in t[0]]
    rows = [one_task(args, k, server, raw) for k in chosen]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--url", help="a running server; without it one is started")
    p.add_argument("-n", type=int, default=100, help="samples per task")
    p.add_argument("--program", default="build/release/fathom")
    p.add_argument("--model", default="models/demo")
    p.add_argument("--only", help="run the tasks whose name contains this")
    p.add_argument("--wrong", action="store_true", help="print wrong answers")
    p.add_argument("--json", help="write the table to this file")
    args = p.parse_args()
    if args.url:
        evaluate(args, args.url)
    else:
        with Served(args.program, args.model) as url:
            evaluate(args, url)


if __name__ == "__main__":
    main()
