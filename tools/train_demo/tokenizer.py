"""The tokenizer of the demo model: `tokenizer.py FILE` trains a byte-level BPE on the demo's own
texts.

2,048 tokens: 3 controls, 256 bytes, merges, fillers and 29 markers. Digits are never merged. The
pre-tokenizer and the markers are those of the V4.1 tokenizer.
"""

import functools
import json
import random
import re
import sys
import unicodedata

from prompt import BOS, EOS, PAD, SPECIALS, UNFLAGGED

VOCAB = 2048
SPLITS = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
]


def tokenizer_json(merges, vocab):
    """The whole tokenizer.json for a trained vocabulary."""
    n, fill = len(vocab), VOCAB - len(SPECIALS)
    added = [(BOS, 0), (EOS, 1), (PAD, 2)]
    added += [("<｜place▁holder▁no▁%d｜>" % (i - n), i) for i in range(n, fill)]
    added += [(s, fill + i) for i, s in enumerate(SPECIALS)]
    split = [
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        for p in SPLITS
    ]
    byte = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": c, **flags, "special": c not in UNFLAGGED} for c, i in added
        ],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": split + [byte]},
        "post_processor": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": False,
            "use_regex": True,
        },
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": merges,
        },
    }


def train(path, documents=6000):
    """Trains on generated conversations and writes tokenizer.json to `path`."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    import batches

    rng = random.Random(5)
    tok = Tokenizer(models.BPE())
    # The training pre-tokenizer isolates each digit, so no merge ever joins two.
    seq = [pre_tokenizers.Split(Regex(p), "isolated") for p in [r"\p{N}"] + SPLITS[1:]]
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        seq + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    texts = []
    for _ in range(documents):
        d = batches.make(rng, rng.choice(["pic", "pic", "arith", "faq", "recall", "tool", "out"]))
        texts += [p[0] for p in d.parts if p[0] not in SPECIALS and p[0] not in (BOS, EOS)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - len(SPECIALS) - 3,
        show_progress=False,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tok.train_from_iterator(texts, trainer)
    m = json.loads(tok.to_str())["model"]
    vocab = {BOS: 0, EOS: 1, PAD: 2}
    for t, _ in sorted(m["vocab"].items(), key=lambda kv: kv[1]):
        vocab[t] = len(vocab)
    merges = [x if isinstance(x, str) else " ".join(x) for x in m["merges"]]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer_json(merges, vocab), f, ensure_ascii=False)
    return len(vocab)


def compressed_map(tok):
    """Engram's token map (model specification 5.1): token id -> id of its normalised text."""
    byte_form = {i: t for t, i in tok.get_vocab(with_added_tokens=True).items()}
    seen, out = {}, []
    for i in range(tok.get_vocab_size(with_added_tokens=True)):
        text = tok.decode([i], skip_special_tokens=False)
        if "\ufffd" in text:
            key = byte_form[i]
        else:
            t = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
            t = "".join(c for c in t if not unicodedata.category(c).startswith("M"))
            t = re.sub("[ \t\r\n]+", " ", "".join(c.lower() for c in t))
            t = " " if t == " " else t.strip()
            key = t or text
        out.append(seen.setdefault(key, len(seen)))
    return out


class Tok:
    """Encodes trusted text (with markers) and untrusted text (markers stay plain text)."""

    def __init__(self, path):
        from tokenizers import Tokenizer

        self.tok = Tokenizer.from_file(path)
        self.id = {s: self.tok.token_to_id(s) for s in SPECIALS + [BOS, EOS, PAD]}
        with open(path, encoding="utf-8") as f:
            raw = json.load(f)
        raw["added_tokens"] = []
        self.plain = Tokenizer.from_str(json.dumps(raw))
        self.map = compressed_map(self.tok)

    @functools.lru_cache(200000)
    def encode(self, text):
        return tuple(self.plain.encode(text, add_special_tokens=False).ids)

    @functools.lru_cache(2000)
    def trusted(self, text):
        return tuple(self.tok.encode(text, add_special_tokens=False).ids)


if __name__ == "__main__":
    print("vocabulary", train(sys.argv[1]))
    print("compressed", len(set(Tok(sys.argv[1]).map)))
