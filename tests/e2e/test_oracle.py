"""`fathom verify` against goldens of random models that the NumPy oracle makes here and now: proof
that nothing is tuned to the committed files.

FATHOM_TEST_SEED=N draws other models; tests/oracle/README.md has the command for many of them.
"""

import os
import subprocess
import sys
import unittest

import pytest

from program import PROGRAM, ROOT, environment

sys.path.append(str(ROOT / "tests"))
from oracle import random_models, selfcheck  # noqa: E402

MODELS = 5
# The first of MODELS seeds, chosen for what they cover (see test_the_models_differ).
SEED = int(os.environ.get("FATHOM_TEST_SEED", "1"))


def test_the_oracle_knows_the_vectors_of_the_specification():
    selfcheck.check_vectors()


@pytest.mark.parametrize("seed", range(SEED, SEED + MODELS))
def test_a_random_model_agrees_with_the_oracle(seed, tmp_path):
    if not os.path.exists(PROGRAM):
        raise unittest.SkipTest(f"SKIP: no program at {PROGRAM}")
    print(f"FATHOM_TEST_SEED={seed}")
    folder = tmp_path / "golden"
    config = random_models.write_golden(str(folder), seed)
    run = subprocess.run([PROGRAM, "verify", "--model", str(folder / "checkpoint"), "--golden",
                          str(folder)], capture_output=True, text=True, env=environment())
    failed = [line for line in run.stdout.splitlines() if "FAIL" in line]
    assert run.returncode == 0, "\n".join([f"seed {seed}: {config}", *failed, run.stderr])
