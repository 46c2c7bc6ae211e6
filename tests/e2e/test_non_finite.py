"""Sums that overflow end the request, by name of the place, and nothing else."""

import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

from program import PROGRAM, Server, environment, model_or_skip

SCALE = "layers.1.attn.wo_b.scale"
HUGE = 127 + 119  # E8M0: the largest weights are just finite, and a sum of a few of them is not
TAP = "layers.1.attn_out"
WEIGHT = "layers.1.attn.wq_a.weight"
NAN_CODE = 0x7F  # of E4M3


def overwrite(folder, tensor, value, count=None):
    """Sets the tensor's first `count` bytes, or all, to one value."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    with (folder / index["weight_map"][tensor]).open("r+b") as shard:
        header_bytes = struct.unpack("<Q", shard.read(8))[0]
        first, end = json.loads(shard.read(header_bytes))[tensor]["data_offsets"]
        shard.seek(8 + header_bytes + first)
        shard.write(bytes([value]) * (end - first if count is None else count))


def run_program(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                          env=environment())


class NonFinite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        good = model_or_skip()
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = pathlib.Path(cls.folder.name, "model")
        shutil.copytree(good, cls.model)
        overwrite(cls.model, SCALE, HUGE)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_run_names_layer_and_op(self):
        bad = run_program("run", "--model", str(self.model), "--prompt", "hi", "--max-tokens", "2")
        self.assertGreater(bad.returncode, 0, "an exit code, no signal")
        self.assertIn(TAP, bad.stderr)
        good = run_program("run", "--model", model_or_skip(), "--prompt", "hi", "--max-tokens", "2")
        self.assertEqual(good.returncode, 0, good.stderr)

    def test_deep_inspection_names_a_weight_that_is_no_number(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, "model")
            shutil.copytree(model_or_skip(), model)
            overwrite(model, WEIGHT, NAN_CODE, count=1)
            seen = run_program("inspect", str(model), "--deep")
        self.assertGreater(seen.returncode, 0)
        self.assertIn(WEIGHT, seen.stdout + seen.stderr)

    def test_the_server_stays_up(self):
        with Server(model=str(self.model)) as server:
            question = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
            for _ in range(2):
                status, body, _ = server.ask("POST", "/v1/chat/completions", question)
                self.assertEqual(status, 500, body)
                self.assertIn("error", json.loads(body))
            self.assertEqual(server.get("/health")[0], 200)
            self.assertIn(TAP, server.log_text())
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
