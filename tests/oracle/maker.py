"""tools/make_v41_checkpoint.py, which made the weights of the official fixtures, as a module."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from make_v41_checkpoint import shards, stub_tokenizer, write_shard  # noqa: E402, F401
