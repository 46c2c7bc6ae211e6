"""Documents of each task, their tokens, and packing into rows."""

import random

import numpy as np

import pictures
import tasks
from prompt import IMAGE, conversation

SYSTEMS = [None] * 16 + ["You are a helpful assistant.", "Answer briefly.", "You are a demo model."]


def make(
    rng,
    task,
    held=False,
    think=None,
    turns=None,
    what=None,
    n=None,
    words=None,
    scenes=tasks.scene_of,
):
    """A random document. n: shapes of a picture; words: length of a recall text; scenes(rng,
    n) draws a scene.
    """
    think = rng.random() < 0.5 if think is None else think  # thinking is the API's default
    opts = dict(
        think=think,
        system=rng.choice(SYSTEMS),
        effort=rng.choice([75] * 7 + [50, 100, rng.randint(1, 100)]),
    )
    if task == "ask":  # what most callers send: one picture, one question, with thinking
        what = what or rng.choice(["count"] * 3 + ["colour"] * 2 + ["where"] * 2)
        ts = tasks.picture_turns(rng, scenes(rng, n), 1, what)
        opts.update(think=True, system=None)
    elif task == "pic":
        ts = tasks.picture_turns(rng, scenes(rng, n), turns or rng.choice([1, 2, 4, 6, 8]), what)
        if turns is None and rng.random() < 0.12:  # a second picture in the same chat
            ts += tasks.picture_turns(rng, scenes(rng, n), rng.choice([1, 2, 3]), what)
    elif task == "call":  # one request, one call, one answer, without thinking
        names = rng.sample(list(tasks.TOOLS), rng.randint(1, 3))
        ts = tasks.tool_turns(rng, names, 1)
        opts.update(think=False, system=None, tools=[tasks.TOOLS[k][1] for k in names])
    elif task == "arith":
        ts = tasks.arithmetic_turns(rng, turns or rng.randint(1, 6), think, held)
    elif task == "faq":
        ts = tasks.faq_turns(rng, turns or rng.randint(1, 4), held)
    elif task == "out":
        ts = tasks.out_turns(rng, turns or rng.randint(1, 2), held)
    elif task == "recall":
        ts = tasks.recall_turns(rng, words or rng.randint(10, 110), questions=turns)
        opts["system"] = None
    elif task == "long":
        ts = tasks.recall_turns(
            rng, words or rng.randint(200, 900), keys=14, questions=turns or rng.randint(5, 10)
        )
        opts["system"] = None
    elif task == "copy":
        ts = tasks.copy_turns(rng, turns or rng.randint(2, 5))
    elif task == "mixed":  # a chat that changes its subject
        ts = (
            tasks.picture_turns(rng, scenes(rng, n), rng.randint(1, 3))
            if rng.random() < 0.6
            else []
        )
        for _ in range(rng.randint(1, 3)):
            f = rng.choice(
                [tasks.faq_turns, tasks.out_turns, lambda r, k: tasks.arithmetic_turns(r, k, False)]
            )
            ts += f(rng, 1)
        opts["think"] = False
    elif task == "tool":
        names = rng.sample(list(tasks.TOOLS), rng.randint(1, 3))
        ts = tasks.tool_turns(rng, names, turns or rng.randint(1, 3))
        opts["tools"] = [tasks.TOOLS[k][1] for k in names]
    return conversation(task if what is None else "pic." + what, ts, **opts)


def finish(d, tok):
    """Adds ids, w (1: the model has to say this token) and kind (0 text, 1 start, 2 token, 3
    row end, 4 end of picture).
    """
    d.ids, d.w, d.kind = [], [], []
    scenes = iter(d.images)
    for text, trusted, loss in d.parts:
        if text == IMAGE and trusted:
            sc = next(scenes)
            bw, bh = pictures.plan(sc["w"], sc["h"])
            gh, gw = -(-bh // pictures.CELL), -(-bw // pictures.CELL)
            k = [1] + ([2] * gw + [3]) * gh + [4]
            d.ids += [tok.id[IMAGE]] * len(k)
            d.kind += k
            d.w += [0] * len(k)
            continue
        e = tok.trusted(text) if trusted else tok.encode(text)
        d.ids += e
        d.kind += [0] * len(e)
        d.w += [loss] * len(e)
    return d


def pack(docs, length, pad=2):
    """First-fit packing into rows of `length` tokens, even starts. Arrays [rows, length] and
    documents in order.
    """
    rows = []
    for d in docs:
        n = len(d.ids) + len(d.ids) % 2
        assert n <= length, (d.task, n)
        for r in rows:
            if r[0] + n <= length:
                break
        else:
            r = [0, []]
            rows.append(r)
        r[1].append((r[0], d))
        r[0] += n
    shape = (len(rows), length)
    ids, pos = np.full(shape, pad, np.int64), np.zeros(shape, np.int64)
    doc, kind, w = (
        np.full(shape, -1, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )
    order = []
    for b, (_, items) in enumerate(rows):
        for off, d in items:
            n = len(d.ids)
            ids[b, off : off + n], pos[b, off : off + n], doc[b, off : off + n] = (
                d.ids,
                np.arange(n),
                len(order),
            )
            kind[b, off : off + n], w[b, off : off + n] = d.kind, d.w
            order.append(d)
    return ids, pos, doc, kind, w, order


def sample(rng, tok, mix, length, rows, easy=False):
    """Documents that fill about `rows` rows of `length` tokens, tasks drawn by the weights of
    `mix`.
    """
    docs, total = [], 0
    names, weights = zip(*mix.items())
    while total < length * rows * 0.93:
        task = rng.choices(names, weights)[0]
        n = rng.choice([1, 1, 2, 2, 3]) if task == "pic" and easy else None
        words = rng.randint(8, 50) if task == "recall" and easy else None
        words = rng.randint(length // 5, int(0.65 * length)) if task == "long" else words
        d = finish(make(rng, task, n=n, words=words), tok)
        if len(d.ids) > length - 2:
            continue
        docs.append(d)
        total += len(d.ids)
    docs.sort(key=lambda d: -len(d.ids))
    return docs


if __name__ == "__main__":
    import sys
    from tokenizer import Tok

    tok, rng = Tok(sys.argv[1]), random.Random(1)
    for task in ["pic", "arith", "faq", "out", "recall", "mixed", "copy", "tool"]:
        d = finish(make(rng, task), tok)
        print("-----", task, len(d.ids), "tokens, loss on", sum(d.w))
        print(tok.tok.decode(d.ids, skip_special_tokens=False)[-700:])
