#!/usr/bin/env python3
"""Write examples.json again: the ids of every prompt text in it, by the reference library.

  pip install tokenizers==0.23.3
  python3 make_examples.py TOKENIZER_DIR      (what tools/fetch_tokenizer.py wrote)

Conversations and prompt texts stay as they are; only "ids" and "count" are computed.
"""
import json
import os
import sys

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = sys.argv[1]
V41 = Tokenizer.from_file(os.path.join(DIR, "tokenizer.json"))
V4 = Tokenizer.from_file(os.path.join(DIR, "v4", "tokenizer.json"))


def main():
    path = os.path.join(HERE, "examples.json")
    with open(path, encoding="utf-8") as f:
        examples = json.load(f)
    for example in examples:
        tokenizer = V41 if example["profile"] == "v41" else V4
        # No text of these requests spells an added token, so matching all of it is right.
        example["ids"] = tokenizer.encode(example["prompt"], add_special_tokens=False).ids
        example["count"] = len(example["ids"])
    with open(path, "w", encoding="utf-8") as f:
        f.write("[\n")
        f.write(",\n".join(json.dumps(e, ensure_ascii=False) for e in examples))
        f.write("\n]\n")


if __name__ == "__main__":
    main()
