"""The inputs of tests/data/cases, made by their generators."""

import json
import pathlib
import subprocess
import sys

from program import ROOT

GEN = ROOT / "tests/data/cases/gen"


def generate(script, folder):
    """Runs a generator; its requests by name."""
    subprocess.run([sys.executable, str(GEN / script), folder], check=True, cwd=GEN, timeout=120,
                   stdout=subprocess.DEVNULL)
    return {p.stem: json.loads(p.read_text()) for p in sorted(pathlib.Path(folder).glob("*.json"))
            if p.stem != "EXPECT"}
