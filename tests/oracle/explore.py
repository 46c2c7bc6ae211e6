"""Compares `fathom verify` with the oracle on random models, as many as asked for.

    PYTHONPATH=tests build/venv/bin/python -m oracle.explore --program build/dev/fathom --seed 1 \\
        --count 100 [--keep FOLDER] [--length TOKENS] [--config CONFIG.json]

Prints one line a model; a failing one's folder is kept. Exit status 1 if any failed. --length: of
the longest prompt. --config: this configuration instead of drawn ones; only weights, prompts and
pictures are random.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from oracle.random_models import write_golden


def verify(program, folder):
    """(exit status, report text)."""
    run = subprocess.run([program, "verify", "--model", os.path.join(folder, "checkpoint"),
                          "--golden", folder], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--keep", default=tempfile.gettempdir())
    parser.add_argument("--length", type=int, default=70)
    parser.add_argument("--config")
    args = parser.parse_args()
    given = None
    if args.config:
        with open(args.config, encoding="utf-8") as f:
            given = json.load(f)
    failed = 0
    for seed in range(args.seed, args.seed + args.count):
        folder = os.path.join(args.keep, f"fathom-oracle-{seed}")
        shutil.rmtree(folder, ignore_errors=True)
        begin = time.monotonic()
        raw = write_golden(folder, seed, args.length, given)
        made = time.monotonic()
        status, text = verify(args.program, folder)
        took = f"{made - begin:.1f} s oracle, {time.monotonic() - made:.1f} s verify"
        print(f"seed {seed}: {'PASS' if status == 0 else 'FAIL'}  {took}", flush=True)
        if status == 0:
            shutil.rmtree(folder)
            continue
        failed += 1
        print("  " + json.dumps(raw["text_config"]))
        print("\n".join(line for line in text.splitlines() if "FAIL" in line or "error" in line))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
