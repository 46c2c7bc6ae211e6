"""Safetensors files and the tensors of a checkpoint, dequantised (spec section 9)."""
import json
import os
import struct

import numpy as np

from oracle.codecs import E2M1, E4M3, E8M0, F32, F64, bf16_decode, fp4_unpack

_NUMPY_TYPES = {"BF16": np.uint16, "F32": F32, "F8_E4M3": np.uint8, "F8_E8M0": np.uint8,
                "I8": np.uint8, "U8": np.uint8, "I32": np.int32}
BLOCK = 32  # rows and columns that share a scale of an FP8 weight; columns of an FP4 one


def read_safetensors(path):
    """{name: (dtype as in the file, memory-mapped raw array)}."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        kind, shape = _NUMPY_TYPES[entry["dtype"]], entry["shape"]
        count = int(np.prod(shape, dtype=np.int64))
        begin = 8 + size + entry["data_offsets"][0]
        raw = np.memmap(path, kind, "r", begin, (count,)) if count else np.zeros(0, kind)
        out[name] = (entry["dtype"], raw.reshape(shape))
    return out


def write_safetensors(path, tensors):
    """tensors: {name: (dtype as in the file, raw array)}."""
    header, at = {}, 0
    for name, (dtype, raw) in tensors.items():
        header[name] = dict(dtype=dtype, shape=list(raw.shape), data_offsets=[at, at + raw.nbytes])
        at += raw.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, raw in tensors.values():
            f.write(np.ascontiguousarray(raw).tobytes())


def widen(dtype, raw):
    """The numbers of a raw array."""
    if dtype == "BF16":
        return bf16_decode(raw)
    return np.asarray(raw)


class Checkpoint:
    """The tensors of a folder, by name; keeps what it has dequantised."""

    def __init__(self, folder):
        index = os.path.join(folder, "model.safetensors.index.json")
        with open(index, encoding="utf-8") as f:
            shards = sorted(set(json.load(f)["weight_map"].values()))
        self.tensors, self.cache = {}, {}
        for shard in shards:
            self.tensors.update(read_safetensors(os.path.join(folder, shard)))

    def plain(self, name):
        """A BF16 or F32 tensor in f64."""
        if name not in self.cache:
            self.cache[name] = widen(*self.tensors[name]).astype(F64)
        return self.cache[name]

    def matrix(self, name):
        """The weight of a linear layer in f64; every product code·scale is exact."""
        if name not in self.cache:
            self.cache[name] = self._dequantised(name)
        return self.cache[name]

    def _dequantised(self, name):
        dtype, raw = self.tensors[name + ".weight"]
        if dtype in ("BF16", "F32"):
            return self.plain(name + ".weight")
        return dequantise(dtype, raw, self.tensors[name + ".scale"][1])

    def rows(self, name, ids):
        """Rows of an Engram table (section 5.4): one scale per row and 32 channels."""
        codes = np.asarray(self.tensors[name + ".weight"][1])[ids]
        scales = np.asarray(self.tensors[name + ".scale"][1]).view(np.uint8)[ids]
        return E4M3[codes].astype(F64) * np.repeat(E8M0[scales], BLOCK, -1)


def dequantise(dtype, raw, scale_bytes):
    """A weight [N, K] in f64: F8_E4M3 with square blocks, or packed FP4 with a scale per row."""
    scale = E8M0[np.asarray(scale_bytes).view(np.uint8)]
    if dtype == "F8_E4M3":  # scales of the last rows and columns may cover less than a block
        weight = E4M3[raw].astype(F64)
        rows, cols = weight.shape
        return weight * np.repeat(np.repeat(scale, BLOCK, 0)[:rows], BLOCK, 1)[:, :cols]
    weight = E2M1[fp4_unpack(raw)].astype(F64)
    return weight * np.repeat(scale, BLOCK, 1)
