"""Engram (spec section 5): token map, bucket primes, hashes, and the gated injection."""
import json
import math
import unicodedata

import numpy as np

from oracle.blocks import Blocks
from oracle.codecs import F64

DEAD = -1  # compressed id of a picture position


def byte_alphabet():
    """{character of a byte-level vocabulary: its byte}."""
    as_they_are = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in as_they_are]
    alphabet = {chr(b): b for b in as_they_are}
    alphabet.update({chr(256 + i): b for i, b in enumerate(others)})
    return alphabet


def _raw_decoder(tokenizer):
    """tokenizer.json -> (number of ids, id -> (decoded text, stored text))."""
    vocab = {i: text for text, i in tokenizer["model"]["vocab"].items()}
    added = {t["id"]: t["content"] for t in tokenizer.get("added_tokens") or []}
    is_byte_level = "ByteLevel" in json.dumps(tokenizer.get("decoder") or {})
    alphabet = byte_alphabet()

    def decode(i):
        stored = added.get(i) or vocab[i]
        if i not in added and is_byte_level and all(ch in alphabet for ch in stored):
            return bytes(alphabet[ch] for ch in stored).decode("utf-8", "replace"), stored
        return stored, stored
    return max([*vocab, *added]) + 1, decode


def normal_form(text, stored):
    """5.1: the key under which texts of tokens are one."""
    if "\ufffd" in text:
        return stored
    t = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    t = "".join(ch.lower() for ch in t if not unicodedata.category(ch).startswith("M"))
    out = ""
    for ch in t:  # a run of white space becomes one space
        ch = " " if ch in " \t\r\n" else ch
        out += "" if ch == " " and out.endswith(" ") else ch
    t = out if out == " " else out.strip()
    return t.replace("\ue000", " ") or text  # the official code's mark of a lone space


def compressed_map(tokenizer, count):
    """5.1: compressed id of each token id, handed out in first-seen order; `count` are wanted."""
    n, decode = _raw_decoder(tokenizer)
    seen = {}
    table = [seen.setdefault(normal_form(*decode(i)), len(seen)) for i in range(n)]
    assert len(seen) == count, f"{len(seen)} compressed ids, the configuration says {count}"
    return np.array(table, np.int64)


def _is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def bucket_primes(c):
    """5.2: {layer: [[prime of each head] for each order from 2]}; no prime is used twice."""
    used, primes = set(), {}
    for layer in c.engram_layer_ids:
        primes[layer] = []
        for _ in range(2, c.engram_max_ngram_size + 1):
            prime, order = c.engram_vocab_size - 1, []
            for _ in range(c.engram_n_heads):
                prime += 1
                while prime in used or not _is_prime(prime):
                    prime += 1
                used.add(prime)
                order.append(prime)
            primes[layer].append(order)
    return primes


def table_rows(c):
    """5.2: rows of each layer's table."""
    return [sum(map(sum, layer)) for layer in bucket_primes(c).values()]


def multipliers(layer, c):
    """5.2: one odd number for each position of an n-gram."""
    bound = max(1, (2 ** 63 - 1) // c.engram_compressed_vocab_size // 2)
    draw = np.random.default_rng(10007 * layer).integers(
        0, bound, size=c.engram_max_ngram_size, dtype=np.int64)
    return draw * 2 + 1


def hash_rows(ids, pad, primes, mult):
    """5.3: compressed ids [n] -> table rows [n, orders·heads]. What lies before the first id or
    behind a DEAD one counts as `pad`."""
    ids, orders = np.asarray(ids, np.int64), len(primes)
    flat = np.array([prime for order in primes for prime in order], np.int64)
    offset = np.concatenate([[0], np.cumsum(flat)[:-1]]).reshape(orders, -1)
    rows = np.zeros((len(ids), orders, offset.shape[1]), np.int64)
    for p in range(len(ids)):
        blocked, h = False, np.int64(0)
        for i in range(orders + 1):
            blocked = blocked or p - i < 0 or ids[p - i] == DEAD
            h = h ^ ((pad if blocked else ids[p - i]) * mult[i])
            if i:
                rows[p, i - 1] = h % np.array(primes[i - 1], np.int64) + offset[i - 1]
    return rows.reshape(len(ids), -1)


class Engram(Blocks):
    """Also needs token_map: compressed id of each token, None without Engram layers."""

    def set_up_engram(self):
        c = self.c
        self.primes = bucket_primes(c)
        self.multipliers = {l: multipliers(l, c) for l in c.engram_layer_ids}
        given = c.engram_num_embeddings
        assert given is None or given == table_rows(c), f"table rows are {table_rows(c)}"

    def engram_rows(self, compressed, history):
        """{layer: table rows of each new position}; history: compressed ids before them."""
        if not self.c.engram_layer_ids:
            return {}
        ids = np.concatenate([history, compressed])
        pad = int(self.token_map[self.c.engram_pad_token_id])
        return {layer: hash_rows(ids, pad, self.primes[layer],
                                 self.multipliers[layer])[len(history):]
                for layer in self.c.engram_layer_ids}

    def inject(self, layer, streams, rows, is_dead):
        """5.5."""
        num, c, w = self.num, self.c, self.w
        name = f"layers.{layer}.engram"
        self.tap(name + ".rows", rows)
        streams = self.tap(name + ".x_in", streams)
        e = num.f(w.rows(name + ".embed", rows).reshape(len(rows), -1))
        kv = self.tap(name + ".kv", self.dense(e, name + ".wkv"))
        split = c.hc_mult * c.hidden_size
        key, value = kv[:, :split].reshape(len(kv), c.hc_mult, c.hidden_size), kv[:, split:]
        weight = num.f(w.plain(name + ".q_weight")) * num.f(w.plain(name + ".k_weight"))

        def inverse_norm(v):
            return num.rsqrt(num.mean_square(v)[..., 0] + num.dtype(c.rms_norm_eps))
        dot = num.f((streams.astype(F64) * weight * key).sum(-1))
        dot = dot * (inverse_norm(streams) * inverse_norm(key)) * num.dtype(c.hidden_size ** -0.5)
        root = np.sqrt(np.maximum(np.abs(dot), num.dtype(1e-6)))
        gate = num.sigmoid(np.copysign(root, dot))
        gate = self.tap(name + ".gate", np.where(is_dead[:, None], num.dtype(0), gate))
        return num.bf(streams + gate[:, :, None] * value[:, None])
