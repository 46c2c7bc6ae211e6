"""Holds our tokenizer against the reference library on 20,000 random texts, id for id.

    build/venv/bin/python -m pytest tests/e2e/tokenizer_compare_test.py

`fathom tokenize DIR --jsonl` reads one JSON string a line and prints one JSON array of ids a line.
The texts spell no added token, so it does not matter whether these are matched.
"""
import json
import os
import random
import subprocess

from tokenizers import Tokenizer

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("FATHOM_TEST_DATA", os.path.join(ROOT, "build", "test-data"))
FOLDER = os.path.join(DATA, "v41-tokenizer")
PROGRAM = os.environ.get("FATHOM_PROGRAM", os.path.join(ROOT, "build", "release", "fathom"))
SEED, COUNT = 41, 20000

# Every class that the patterns name, with the ones that other libraries put elsewhere.
SPACES = (" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u180e\u2003\u200b\u2028\u2029\u202f\u205f"
          "\u3000\ufeff")
MARKS = "\u0301\u0308\u20dd\u093f\u0e31\u3099\ufe0f\u200d"
NUMBERS = "0123456789\u0663\u0967\u2460\u00bd\u2167\u3007\U0001d7d8"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00a1\u2014\u3002\uff0c\u20ac\u00a9\u2192\u30fb"
LETTERS = "abcXYZ\u00e9\u00df\u0416\u03c3\u0130\u05d0\u0627\u0e01\u10d0\uac00\uff71\U00010400"
HAN = "\u4e00\u4f60\u597d\u9fa5\u9fa6\u3042\u30a2\u30fc\u3040\u3400\U00020000"
OTHER = "\x00\x01\x7f\u0378\ue000\ufffe\ufffd\U0001f600\U0001f3fd\U000e0067\U0010ffff"
WORDS = ["the", "The", " the", "don't", "I'LL", "hello world", "12345", "3.14", "foo_bar", "  ",
         "\n\n", "\r\n", "x  \n  y", "http://a.b/c?d=e", "for (int i = 0;", "\u4f60\u597d",
         "\u3053\u3093\u306b", "\uc548\ub155", "\u041f\u0440\u0438",
         "\U0001f469\u200d\U0001f680", "    return", "=====", "#include"]
CLASSES = [SPACES, MARKS, NUMBERS, PUNCTUATION, LETTERS, HAN, OTHER]


def any_character(draw):
    while True:
        point = draw.randrange(0x110000) if draw.random() < 0.5 else draw.randrange(0x3000)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def random_text(draw):
    """Runs of one class, words and any code points, 1 to 30 of them."""
    parts = []
    for _ in range(draw.randint(1, 30)):
        kind = draw.random()
        if kind < 0.45:
            characters = draw.choice(CLASSES)
            parts.append("".join(draw.choice(characters) for _ in range(draw.randint(1, 5))))
        elif kind < 0.8:
            parts.append(draw.choice(WORDS))
        elif kind < 0.9:
            parts.append(draw.choice(draw.choice(CLASSES)) * draw.randint(2, 40))
        else:
            parts.append(any_character(draw))
    return "".join(parts)


def test_ids_equal_the_reference_library():
    draw = random.Random(SEED)
    texts = [random_text(draw) for _ in range(COUNT)]
    assert os.path.isfile(os.path.join(FOLDER, "tokenizer.json")), FOLDER + ": run ./dev setup"
    reference = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
    want = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]

    lines = "".join(json.dumps(text) + "\n" for text in texts)
    # The program refuses FATHOM_ variables that it does not know, such as those of the tests.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FATHOM_")}
    result = subprocess.run([PROGRAM, "tokenize", FOLDER, "--jsonl"], input=lines, text=True,
                            capture_output=True, timeout=600, env=clean)
    assert result.returncode == 0, result.stderr
    got = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(got) == COUNT
    wrong = [i for i in range(COUNT) if got[i] != want[i]]
    assert not wrong, "%d texts differ, the first is %r: %s, wanted %s" % (
        len(wrong), texts[wrong[0]], got[wrong[0]], want[wrong[0]])
