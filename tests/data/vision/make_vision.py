"""Makes oracle.safetensors: what the project's NumPy oracle, written from the specification alone, gives for
pictures of tests/golden/v41-tiny. The official golden's vit_out stands in one arithmetic only (its library's
fused attention); these are the others.

    python make_vision.py FOLDER_OF_ORACLE

ARITHMETIC.picture-P.{vit_out, aligner_out}, F32: `smooth` (no rounding anywhere, pictures 1 and 3),
`reference` (spec 6.3, probabilities not rounded, picture 1), `rounded_p` (probabilities rounded to bf16 before
P·V, the denominator not, picture 1).
"""
import json
import os
import struct
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "..", "golden", "v41-tiny")
sys.path.insert(0, sys.argv[1])

import common  # noqa: E402
import compare  # noqa: E402
import v41_oracle  # noqa: E402
import vision  # noqa: E402


class Tower(vision.Vision):
    def __init__(self, mode, mimic):
        with open(os.path.join(GOLDEN, "checkpoint", "config.json")) as file:
            self.c = v41_oracle.Config(json.load(file))
        self.w = common.Checkpoint(os.path.join(GOLDEN, "checkpoint"))
        self.num = common.Numerics(mode, mimic=mimic)
        self.taps = {}

    def tap(self, name, value):
        self.taps[name] = value
        return value


def main():
    tensors = {}
    runs = (("smooth", "f64", (), (1, 3)), ("reference", "reference", (), (1,)), ("rounded_p", "reference", ("vprobs",), (1,)))
    for name, mode, mimic, pictures in runs:
        for number in pictures:
            tower = Tower(mode, mimic)
            tower.image_embedding(compare.read_png(os.path.join(GOLDEN, f"picture-{number}.png")))
            for tap, stored in (("vision.out", "vit_out"), ("aligner.out", "aligner_out")):
                tensors[f"{name}.picture-{number}.{stored}"] = np.asarray(tower.taps[tap], np.float32)
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, "oracle.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values()))


if __name__ == "__main__":
    main()
