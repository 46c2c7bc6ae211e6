"""`fathom verify` against goldens of random models that the NumPy oracle makes here and now: proof
that nothing is tuned to the committed files.

FATHOM_TEST_SEED=N draws other models; tests/oracle/README.md has the command for many of them.
"""

import os
import shutil
import subprocess
import sys
import unittest

import pytest

from program import PROGRAM, ROOT, environment

sys.path.append(str(ROOT / "tests"))
from oracle import checkpoint, random_models, selfcheck  # noqa: E402

MODELS = 5
# 249 to 253 have between them: all routers, 1 to 8 layers, ratios 0, 1 and 2, candidates, lists by
# default, 1, 3 and 4 streams, window 1, Engram in the first layer, drafts, pictures with
# max_wh_ratio, output groups that cut a scale block.
SEED = int(os.environ.get("FATHOM_TEST_SEED", "249"))


def verify(folder):
    """(exit status, lines that failed)."""
    if not os.path.exists(PROGRAM):
        raise unittest.SkipTest(f"SKIP: no program at {PROGRAM}")
    run = subprocess.run([PROGRAM, "verify", "--model", str(folder / "checkpoint"), "--golden",
                          str(folder)], capture_output=True, text=True, env=environment())
    failed = [line for line in run.stdout.splitlines() if "FAIL" in line]
    return run.returncode, "\n".join([*failed, run.stderr])


def test_the_oracle_knows_the_vectors_of_the_specification():
    selfcheck.check_vectors()


@pytest.mark.parametrize("seed", range(SEED, SEED + MODELS))
def test_a_random_model_agrees_with_the_oracle(seed, tmp_path):
    print(f"FATHOM_TEST_SEED={seed}")
    folder = tmp_path / "golden"
    config = random_models.write_golden(str(folder), seed)
    status, failed = verify(folder)
    assert status == 0, f"seed {seed}: {config}\n{failed}"


def test_one_wrong_logit_is_noticed(tmp_path):
    folder = tmp_path / "golden"
    shutil.copytree(ROOT / "tests/golden/v41-oracle-b", folder)
    path = folder / "prefill-n041.safetensors"
    tensors = {name: (dtype, raw.copy())
               for name, (dtype, raw) in checkpoint.read_safetensors(path).items()}
    tensors["logits_smooth"][1][40, 7] += 0.001
    checkpoint.write_safetensors(path, tensors)
    status, failed = verify(folder)
    assert status == 1 and "logits_smooth row 40" in failed
