"""Random checkpoints whose weights can be made again in any language (spec section 12.3).

Every weight is a function of its name and index alone:
u = (splitmix64(fnv1a64(name) + i) >> 40)·2^-23 − 1, in [−1, 1).
    1 + 0.1·u   norm weights, q_weight, k_weight     1 + 0.2·u   *_scale of the hyper-connections
    0.5·u       every other vector                   u·fan_in^-½ every matrix
then quantised to its storage type: FP8 by blocks of 32×32, FP4 by rows and 32 columns.
"""
import json
import os
import sys

import numpy as np

from oracle.checkpoint import BLOCK, write_safetensors
from oracle.codecs import (C6, C448, E8M0, F32, bf16_encode, e2m1_encode, e4m3_encode,
                           e8m0_encode, fp4_pack, pow2ceil)
from oracle.config import Config
from oracle.engram import table_rows
from oracle.maker import stub_tokenizer

# Matrices that write into the streams are drawn at an eighth, as in the official fixtures: at full
# size a random network is chaotic.
RESIDUAL_GAIN = F32(0.125)


def tiny_a():
    """The configuration of section 1.3, with every mechanism active."""
    text = dict(
        model_type="deepseek_v41_text", vocab_size=512, hidden_size=128, num_hidden_layers=8,
        num_attention_heads=4, head_dim=64, qk_rope_head_dim=16, q_lora_rank=64, o_groups=2,
        o_lora_rank=64, sliding_window=16, rope_theta=10000, compress_rope_theta=160000,
        compress_ratios=[0, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0], kv_source_layer_ids=[1, 3, 4],
        index_source_layer_ids=[1, 3, 4, 6], candidate_source_layer_id=4, candidate_topk_blocks=3,
        candidate_block_size=4, index_n_heads=4, index_head_dim=64, index_topk=8,
        rope_scaling=dict(rope_type="yarn", factor=4, beta_fast=32, beta_slow=1,
                          original_max_position_embeddings=64),
        n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=64,
        engram_layer_ids=[1, 3], engram_num_embeddings=[660, 864], engram_vocab_size=100,
        engram_n_heads=2, engram_head_dim=32, engram_compressed_vocab_size=256,
        num_nextn_predict_layers=3, dspark_block_size=5, dspark_noise_token_id=511,
        dspark_target_layer_ids=[5, 6, 7], dspark_markov_rank=32, dspark_n_routed_experts=4,
        dspark_num_experts_per_tok=2)
    vision = dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
                  intermediate_size=96, max_image_tokens=64, min_pixels=7056)
    return dict(model_type="deepseek_v41", image_token_id=500, text_config=text,
                vision_config=vision)


class TensorList:
    """The tensors of a configuration as (name, kind, shape), in the order of section 9.2. FP8,
    FP8ROW and FP4 ones also get a .scale."""

    def __init__(self, c):
        self.c, self.out = c, []

    def add(self, kind, shape, *names):
        self.out.extend((name, kind, shape) for name in names)

    def all(self):
        c = self.c
        self.add("BF16", (c.vocab_size, c.hidden_size), "embed.weight", "head.weight")
        self.add("BF16", (c.hidden_size,), "norm.weight")
        rows = dict(zip(c.engram_layer_ids, table_rows(c)))
        for l in range(c.num_hidden_layers):
            self.block(f"layers.{l}.", c.n_routed_experts)
            self.sources(l)
            if l in rows:
                self.engram(f"layers.{l}.engram.", rows[l])
        for i in range(c.num_nextn_predict_layers):
            self.stage(i)
        if c.vision is not None:
            self.vision(c.vision)
        return self.out

    def block(self, p, experts):
        c, a = self.c, p + "attn."
        mixes, width = (2 + c.hc_mult) * c.hc_mult, c.num_attention_heads * c.head_dim
        for site in ("attn", "ffn"):
            self.add("BF16", (c.hidden_size,), f"{p}{site}_norm.weight")
            self.add("F32", (mixes, c.hc_mult * c.hidden_size), f"{p}hc_{site}_fn")
            self.add("F32", (mixes,), f"{p}hc_{site}_base")
            self.add("F32", (3,), f"{p}hc_{site}_scale")
        self.add("F32", (c.num_attention_heads,), a + "attn_sink")
        self.add("BF16", (c.q_lora_rank,), a + "q_norm.weight")
        self.add("BF16", (c.head_dim,), a + "kv_norm.weight")
        self.add("FP8", (c.q_lora_rank, c.hidden_size), a + "wq_a.weight")
        self.add("FP8", (width, c.q_lora_rank), a + "wq_b.weight")
        self.add("FP8", (c.head_dim, c.hidden_size), a + "wkv.weight")
        self.add("FP8", (c.o_groups * c.o_lora_rank, width // c.o_groups), a + "wo_a.weight")
        self.add("FP8", (c.hidden_size, c.o_groups * c.o_lora_rank), a + "wo_b.weight")
        self.experts(p + "ffn.", experts)

    def experts(self, p, count):
        c = self.c
        inner, outer = (c.moe_intermediate_size, c.hidden_size), (c.hidden_size,
                                                                  c.moe_intermediate_size)
        self.add("BF16", (count, c.hidden_size), p + "gate.weight")
        self.add("F32", (count,), p + "gate.bias", p + "gate.bias_vl")
        for e in range(count):
            expert = f"{p}experts.{e}."
            self.add("FP4", inner, expert + "w1.weight", expert + "w3.weight")
            self.add("FP4", outer, expert + "w2.weight")
        shared = p + "shared_experts."
        self.add("FP8", inner, shared + "w1.weight", shared + "w3.weight")
        self.add("FP8", outer, shared + "w2.weight")

    def sources(self, l):
        c, a = self.c, f"layers.{l}.attn."
        if l in c.kv_source_layer_ids:
            self.add("BF16", (c.head_dim, c.hidden_size), a + "compressor.wkv.weight")
            self.add("BF16", (c.head_dim,), a + "compressor.norm.weight")
            if c.compress_ratios[l] > 1:
                self.add("BF16", (c.head_dim, c.hidden_size), a + "compressor.wgate.weight")
            self.add("BF16", (c.index_head_dim, c.head_dim), a + "indexer.wk.weight")
            self.add("BF16", (c.index_head_dim,), a + "indexer.k_norm.weight")
        if l in c.index_source_layer_ids:
            self.add("FP8", (c.index_n_heads * c.index_head_dim, c.q_lora_rank),
                     a + "indexer.wq_b.weight")
            self.add("BF16", (c.index_n_heads, c.hidden_size), a + "indexer.weights_proj.weight")

    def engram(self, p, rows):
        c = self.c
        columns = (c.engram_max_ngram_size - 1) * c.engram_n_heads
        self.add("FP8ROW", (rows, c.engram_head_dim), p + "embed.weight")
        self.add("FP8", ((c.hc_mult + 1) * c.hidden_size, columns * c.engram_head_dim),
                 p + "wkv.weight")
        self.add("BF16", (c.hc_mult, c.hidden_size), p + "q_weight", p + "k_weight")

    def stage(self, i):
        c, p = self.c, f"mtp.{i}."
        d, rank = c.hidden_size, c.dspark_markov_rank
        self.block(p, c.dspark_n_routed_experts)
        if i == 0:
            self.add("FP8", (d, len(c.dspark_target_layer_ids) * d), p + "main_proj.weight")
            self.add("BF16", (d,), p + "main_norm.weight")
        if i == c.num_nextn_predict_layers - 1:
            self.add("BF16", (d,), p + "norm.weight")
            self.add("BF16", (c.vocab_size, rank), p + "markov_head.embed.weight",
                     p + "markov_head.head.weight")
            self.add("BF16", (1, d + rank), p + "confidence_head.proj.weight")

    def vision(self, v):
        d, width = self.c.hidden_size, v.hidden_size
        self.add("BF16", (d,), "image_start", "image_end", "image_newline")
        self.add("BF16", (width, 3 * v.patch_size ** 2), "vision.patch_embed.proj.weight")
        self.add("BF16", (width,), "vision.patch_embed.proj.bias", "vision.norm.weight")
        for b in range(v.num_hidden_layers):
            p = f"vision.blocks.{b}."
            self.add("BF16", (width,), p + "norm1.weight", p + "norm2.weight", p + "attn.wo.bias")
            self.add("BF16", (3 * width, width), p + "attn.wqkv.weight")
            self.add("BF16", (3 * width,), p + "attn.wqkv.bias")
            self.add("BF16", (width, width), p + "attn.wo.weight")
            self.add("BF16", (2 * v.intermediate_size, width), p + "mlp.w1.weight")
            self.add("BF16", (width, v.intermediate_size), p + "mlp.w2.weight")
        self.add("BF16", (d, width * v.downsample_ratio ** 2), "aligner.w1.weight")
        self.add("BF16", (d, d), "aligner.w2.weight")
        self.add("BF16", (d,), "aligner.w1.bias", "aligner.w2.bias")


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & (2 ** 64 - 1)
    return h


def uniform(name, count):
    """The first `count` numbers of a tensor, in [−1, 1)."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a64(name)) + np.arange(count, dtype=np.uint64)
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) * 2.0 ** -23 - 1


def values(name, shape):
    u = uniform(name, int(np.prod(shape))).reshape(shape)
    if name.endswith(("norm.weight", "norm1.weight", "norm2.weight", "q_weight", "k_weight")):
        return (1 + 0.1 * u).astype(F32)
    if name.endswith("_scale"):
        return (1 + 0.2 * u).astype(F32)
    if len(shape) == 1:
        return (0.5 * u).astype(F32)
    gain = RESIDUAL_GAIN if ".wo_b." in name or ".w2." in name else F32(1)
    return (u * shape[-1] ** -0.5).astype(F32) * gain


def _quantised(w, kind):
    """w [N, K] -> (codes [N, K], scales)."""
    n, k = w.shape
    if kind == "FP8":
        padded = np.pad(w, ((0, -n % BLOCK), (0, -k % BLOCK)))
        tiles = padded.reshape(padded.shape[0] // BLOCK, BLOCK, padded.shape[1] // BLOCK, BLOCK)
        scale = pow2ceil(np.maximum(np.abs(tiles).max((1, 3)), F32(1e-4)) * C448)
        full = np.repeat(np.repeat(scale, BLOCK, 0), BLOCK, 1)[:n, :k]
        return e4m3_encode(w / full), scale
    reciprocal, encode = (C6, e2m1_encode) if kind == "FP4" else (C448, e4m3_encode)
    amax = np.abs(w).reshape(n, k // BLOCK, BLOCK).max(2)
    scale = pow2ceil(np.maximum(amax, F32(1e-30)) * reciprocal)
    return encode(w / np.repeat(scale, BLOCK, 1)), scale


def stored(name, kind, shape):
    """The tensor, and its scales, as {name: (dtype in the file, raw array)}."""
    w = values(name, shape)
    if kind == "BF16":
        return {name: ("BF16", bf16_encode(w))}
    if kind == "F32":
        return {name: ("F32", w)}
    codes, scale = _quantised(w, kind)
    bytes_of_scale = e8m0_encode(scale)
    assert (E8M0[bytes_of_scale] == scale).all()
    weight = ("I8", fp4_pack(codes)) if kind == "FP4" else ("F8_E4M3", codes)
    return {name: weight, name.removesuffix("weight") + "scale": ("F8_E8M0", bytes_of_scale)}


def write_checkpoint(raw, folder):
    """raw: the content of config.json. One shard."""
    os.makedirs(folder, exist_ok=True)
    config = Config(raw)
    tensors = {}
    for name, kind, shape in TensorList(config).all():
        tensors.update(stored(name, kind, shape))
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    index = dict(metadata={}, weight_map={name: "model.safetensors" for name in tensors})
    files = {"config.json": (raw, 1), "model.safetensors.index.json": (index, None),
             "tokenizer.json": (stub_tokenizer(config.vocab_size), None)}
    for name, (content, indent) in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f, indent=indent)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 -m oracle.synthetic CONFIG.json FOLDER")
    with open(sys.argv[1], encoding="utf-8") as source:
        write_checkpoint(json.load(source), sys.argv[2])
