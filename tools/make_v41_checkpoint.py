#!/usr/bin/env python3
"""Write a random DeepSeek-V4.1-Flash checkpoint in the official layout (specification, section 9).

    make_v41_checkpoint.py CONFIG.json OUT_DIR [--seed N] [--fast] [--no-vision] [--no-mtp]

CONFIG.json is a composite config.json (text_config, vision_config; section 1.1) of any size;
tools/bench_config.json is the one of the benchmarks (3.5 GB, --fast). OUT_DIR gets config.json, the
shards, model.safetensors.index.json, and, when the vocabulary is twice the compressed vocabulary, a
stub tokenizer.json (id 2k is "w<k>", id 2k+1 is " W<k>").

Every value depends only on the seed, the tensor name and the element index, so the output is the
same on every machine and can be made again in any language:
    base = mix(fnv1a64(name) + seed*G);  z_i = mix(base + (i+1)*G)
    G = 0x9E3779B97F4A7C15 (splitmix64)
    r_i = f32(sum of the four 16-bit lanes of z_i - 131070) * f32(sqrt(3)/65536)   # about N(0,1)
    value = offset + std*r_i (f32), times {1/2, 1, 2}/1.3229 per scale group for FP8 and FP4
Then the value is rounded to the tensor's storage type. --fast draws FP4 and Engram-table codes
directly (16 or 8 codes from each z_i), which is what makes checkpoints of many GB practical.

Tensors are made in pieces of about a million elements, so memory stays small whatever the size.
Needs NumPy only.
"""
import argparse
import json
import os

import numpy as np

G = 0x9E3779B97F4A7C15
M64 = (1 << 64) - 1
PIECE = 1 << 20                                    # elements made at a time
C448, C6 = np.float32(1 / 448), np.float32(1 / 6)
ITEM = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "I8": 1}


# ---- random numbers -----------------------------------------------------------------------------
def fnv1a64(s):
    h = 0xCBF29CE484222325
    for b in s.encode():
        h = ((h ^ b) * 0x100000001B3) & M64
    return h


def mix(z):
    """The splitmix64 finaliser, on a NumPy uint64 array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Stream:
    """Random access to z_i of one tensor."""

    def __init__(self, name, seed):
        self.base = int(mix(np.array([(fnv1a64(name) + seed * G) & M64], np.uint64))[0])

    def bits(self, start, count):
        i = np.arange(start + 1, start + 1 + count, dtype=np.uint64)
        return mix(np.uint64(self.base) + i * np.uint64(G))

    def normal(self, start, count):
        lanes = self.bits(start, count).view(np.uint16).reshape(count, 4)
        total = lanes.astype(np.int32).sum(axis=1, dtype=np.int32) - 131070
        return total.astype(np.float32) * np.float32(3**0.5 / 65536)


# ---- storage types ------------------------------------------------------------------------------
def to_bf16(x):
    b = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((b + 0x7FFF + ((b >> 16) & 1)) >> 16).astype(np.uint16)


def pow2ceil(t):
    """Smallest power of two >= t (t normal), as an E8M0 byte."""
    b = np.ascontiguousarray(t, np.float32).view(np.uint32)
    return ((b >> 23) + ((b & 0x7FFFFF) != 0)).astype(np.uint8)


def e8m0(byte):
    return np.exp2(byte.astype(np.float32) - 127)


def e4m3(x):
    """f32 -> E4M3 code, round to nearest even, saturating at 448."""
    a = np.minimum(np.abs(x), np.float32(448)).astype(np.float32)
    b = a.view(np.uint32)
    big = ((b + 0x7FFFF + ((b >> 20) & 1)) >> 20) - (120 << 3)
    code = np.where(a < 2.0**-6, np.rint(a * 512).astype(np.uint32), big)
    return (code | (np.signbit(x).astype(np.uint32) << 7)).astype(np.uint8)


def e2m1(x):
    """f32 -> E2M1 code, round to nearest, ties to the even code, saturating at 6."""
    a = np.abs(x)
    code = np.zeros(x.shape, np.uint8)
    for mid, up in ((.25, 0), (.75, 1), (1.25, 0), (1.75, 1), (2.5, 0), (3.5, 1), (5.0, 0)):
        code += (a >= mid) if up else (a > mid)
    return code | (np.signbit(x).astype(np.uint8) << 3)


def e4m3_rms():
    c = np.arange(127)
    v = np.where(c < 8, c / 512, (1 + (c % 8) / 8) * np.exp2(c // 8 - 7.0))
    return float(np.sqrt((v**2).mean()))


# ---- tensors ------------------------------------------------------------------------------------
class Tensor:
    """A stored tensor: `pieces()` yields its bytes; a quantised one also leaves `scale_bytes`."""

    def __init__(self, name, dtype, shape, std=None, offset=0.0, group=None):
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)
        self.std = shape[-1] ** -0.5 if std is None else std
        self.offset, self.group = offset, group    # group: rows x 32 columns sharing a scale
        self.scale_of = None

    @property
    def nbytes(self):
        return int(np.prod(self.shape, dtype=np.int64)) * ITEM[self.dtype]

    def scale(self):
        """The companion X.scale tensor, filled while this one is written."""
        rows, cols = self.shape[0], self.shape[1] * (2 if self.dtype == "I8" else 1)
        s = Tensor(self.name.removesuffix("weight") + "scale", "F8_E8M0",
                   (-(-rows // self.group), -(-cols // 32)))
        s.scale_of = self
        return s

    def pieces(self, seed, fast):
        if self.scale_of is not None:
            yield self.scale_of.scale_bytes.tobytes()
            return
        st = Stream(self.name, seed)
        if self.group is None:
            n = int(np.prod(self.shape, dtype=np.int64))
            for i in range(0, n, PIECE):
                v = np.float32(self.offset) + np.float32(self.std) * st.normal(i, min(PIECE, n - i))
                yield (v if self.dtype == "F32" else to_bf16(v)).tobytes()
            return
        rows, cols = self.shape[0], self.shape[1] * (2 if self.dtype == "I8" else 1)
        nb = -(-cols // 32)
        gains = Stream(self.name + "#gain", seed)
        step = max(1, PIECE // cols // 32) * 32
        out = []
        for r0 in range(0, rows, step):
            r1 = min(rows, r0 + step)
            make = self._fast if fast and self.group == 1 else self._exact
            data, sc = make(st, gains, r0, r1, cols, nb)
            out.append(sc)
            yield data.tobytes()
        self.scale_bytes = np.concatenate(out)

    def _exact(self, st, gains, r0, r1, cols, nb):
        n, g = r1 - r0, self.group
        gr = -(-n // g)
        draws = gains.bits(r0 // g * nb, gr * nb) % np.uint64(3)
        gain = np.exp2(draws.astype(np.float32) - 1).reshape(gr, nb)
        v = st.normal(r0 * cols, n * cols).reshape(n, cols) * np.float32(self.std / 1.75**0.5)
        full = np.zeros((gr * g, nb * 32), np.float32)
        full[:n, :cols] = v
        t = full.reshape(gr, g, nb, 32) * gain[:, None, :, None]
        amax = np.abs(t).max(axis=(1, 3))
        if self.dtype == "I8":
            s = pow2ceil(np.maximum(amax, np.float32(6 * 2.0**-126)) * C6)
            q = e2m1(t / e8m0(s)[:, None, :, None]).reshape(gr * g, nb * 32)[:n, :cols]
            q = q[:, 0::2] | (q[:, 1::2] << 4)
        else:
            s = pow2ceil(np.maximum(amax, np.float32(1e-4)) * C448)
            q = e4m3(t / e8m0(s)[:, None, :, None]).reshape(gr * g, nb * 32)[:n, :cols]
        return np.ascontiguousarray(q), s

    def _fast(self, st, gains, r0, r1, cols, nb):
        n = r1 - r0
        per = self.shape[1]
        q = st.bits(r0 * per // 8, -(-n * per // 8)).view(np.uint8)[: n * per].reshape(n, per)
        if self.dtype == "I8":
            e = round(float(np.log2(self.std / 3.2)))
        else:
            q = np.where((q & 0x7F) == 0x7F, q ^ 1, q)
            e = round(float(np.log2(self.std / e4m3_rms())))
        draws = gains.bits(r0 * nb, n * nb) % np.uint64(3)
        s = draws.astype(np.uint8).reshape(n, nb) + np.uint8(126 + e)
        return np.ascontiguousarray(q), s


def norm(name, n):
    return [Tensor(name, "BF16", (n,), 0.1, 1.0)]


def bf16(name, *shape, std=None):
    return [Tensor(name, "BF16", shape, std)]


def f32(name, *shape, std=None, offset=0.0):
    return [Tensor(name, "F32", shape, std, offset)]


# Matrices that write into the residual stream are drawn smaller, as in a trained model: with std
# fan_in^-1/2 the random network is chaotic, and one flipped rounding grows into different logits.
RESIDUAL = 0.125


def fp8(name, out, inp, gain=1.0):
    w = Tensor(name + ".weight", "F8_E4M3", (out, inp), std=gain * inp**-0.5, group=32)
    return [w, w.scale()]


def fp4(name, out, inp, gain=1.0):
    w = Tensor(name + ".weight", "I8", (out, inp // 2), std=gain * inp**-0.5, group=1)
    return [w, w.scale()]


def table(name, rows, dim):
    w = Tensor(name + ".weight", "F8_E4M3", (rows, dim), std=1.0, group=1)
    return [w, w.scale()]


# ---- model --------------------------------------------------------------------------------------
def is_prime(n):
    """Deterministic Miller-Rabin below 3.3e24."""
    if n < 2:
        return False
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    for p in small:
        if n % p == 0:
            return n == p
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in small:
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def engram_rows(t):
    """Rows of each Engram table: the sum of its bucket primes (section 5.2)."""
    used, rows = set(), []
    for _ in t["engram_layer_ids"]:
        total = 0
        for _ in range(t["engram_max_ngram_size"] - 1):
            cur = t["engram_vocab_size"] - 1
            for _ in range(t["engram_n_heads"]):
                cur += 1
                while cur in used or not is_prime(cur):
                    cur += 1
                used.add(cur)
                total += cur
        rows.append(total)
    return rows


def block(p, t, experts, ratio=0, kv_source=False, index_source=False):
    """One backbone layer or DSpark stage, without Engram and the DSpark extras."""
    d, hd, qr, s = t["hidden_size"], t["head_dim"], t["q_lora_rank"], t["hc_mult"]
    h, g, orank = t["num_attention_heads"], t["o_groups"], t["o_lora_rank"]
    inter = t["moe_intermediate_size"]
    out = norm(p + "attn_norm.weight", d) + norm(p + "ffn_norm.weight", d)
    for site in ("attn", "ffn"):
        out += f32(f"{p}hc_{site}_fn", (2 + s) * s, s * d)
        out += f32(f"{p}hc_{site}_base", (2 + s) * s, std=0.5)
        out += f32(f"{p}hc_{site}_scale", 3, std=0.2, offset=1.0)
    a = p + "attn."
    out += f32(a + "attn_sink", h, std=0.5)
    out += norm(a + "q_norm.weight", qr) + norm(a + "kv_norm.weight", hd)
    out += fp8(a + "wq_a", qr, d) + fp8(a + "wq_b", h * hd, qr) + fp8(a + "wkv", hd, d)
    out += fp8(a + "wo_a", g * orank, h * hd // g) + fp8(a + "wo_b", d, g * orank, RESIDUAL)
    if kv_source:
        out += bf16(a + "compressor.wkv.weight", hd, d) + norm(a + "compressor.norm.weight", hd)
        if ratio > 1:
            out += bf16(a + "compressor.wgate.weight", hd, d)
    if index_source:
        ih, idim = t["index_n_heads"], t["index_head_dim"]
        out += fp8(a + "indexer.wq_b", ih * idim, qr)
        out += bf16(a + "indexer.weights_proj.weight", ih, d)
        if kv_source:
            out += bf16(a + "indexer.wk.weight", idim, hd) + norm(a + "indexer.k_norm.weight", idim)
    f = p + "ffn."
    out += bf16(f + "gate.weight", experts, d)
    out += f32(f + "gate.bias", experts, std=0.5) + f32(f + "gate.bias_vl", experts, std=0.5)
    for e in range(experts):
        w = f"{f}experts.{e}."
        out += fp4(w + "w1", inter, d) + fp4(w + "w2", d, inter, RESIDUAL) + fp4(w + "w3", inter, d)
    w = f + "shared_experts."
    out += fp8(w + "w1", inter, d) + fp8(w + "w2", d, inter, RESIDUAL) + fp8(w + "w3", inter, d)
    return out


def linear(name, out, inp):
    return bf16(name + ".weight", out, inp) + bf16(name + ".bias", out, std=0.5)


def vision_tower(v, d):
    c, i, p, r = v["hidden_size"], v["intermediate_size"], v["patch_size"], v["downsample_ratio"]
    s = linear("vision.patch_embed.proj", c, 3 * p * p)
    for b in range(v["num_hidden_layers"]):
        q = f"vision.blocks.{b}."
        s += norm(q + "norm1.weight", c) + norm(q + "norm2.weight", c)
        s += linear(q + "attn.wqkv", 3 * c, c) + linear(q + "attn.wo", c, c)
        s += bf16(q + "mlp.w1.weight", 2 * i, c) + bf16(q + "mlp.w2.weight", c, i)
    s += norm("vision.norm.weight", c)
    return s + linear("aligner.w1", d, c * r * r) + linear("aligner.w2", d, d)


def engrams(t):
    """One list of tensors for each Engram layer."""
    rows = engram_rows(t)
    if t.setdefault("engram_num_embeddings", rows) != rows:
        raise SystemExit(f"engram_num_embeddings must be {rows}")
    s, d, hd = t["hc_mult"], t["hidden_size"], t["engram_head_dim"]
    k = (t["engram_max_ngram_size"] - 1) * t["engram_n_heads"] * hd
    for l, r in zip(t["engram_layer_ids"], rows):
        p = f"layers.{l}.engram."
        x = table(p + "embed", r, hd) + fp8(p + "wkv", d * (s + 1), k)
        for q in ("q_weight", "k_weight"):
            x.append(Tensor(p + q, "BF16", (s, d), 0.1, 1.0))
        yield x


def shards(cfg, vision=True, mtp=True):
    """Tensors grouped as in the official shard list (section 9.1)."""
    t, v = cfg["text_config"], cfg.get("vision_config")
    d, n, vocab = t["hidden_size"], t["num_hidden_layers"], t["vocab_size"]
    out = []
    if vision and v:
        out.append(vision_tower(v, d))
    s = bf16("embed.weight", vocab, d, std=1.0)
    if vision and v:
        s += [x for k in ("start", "end", "newline") for x in bf16("image_" + k, d, std=1.0)]
    out.append(s)
    for l in range(n):
        out.append(block(f"layers.{l}.", t, t["n_routed_experts"], t["compress_ratios"][l],
                         l in t["kv_source_layer_ids"], l in t["index_source_layer_ids"]))
    out.append(norm("norm.weight", d) + bf16("head.weight", vocab, d))
    stages = t.get("num_nextn_predict_layers", 0) if mtp else 0
    for i in range(stages):
        p = f"mtp.{i}."
        s = block(p, t, t.get("dspark_n_routed_experts") or t["n_routed_experts"])
        if i == 0:
            s += fp8(p + "main_proj", d, d * len(t["dspark_target_layer_ids"]))
            s += norm(p + "main_norm.weight", d)
        if i == stages - 1:
            k = t["dspark_markov_rank"]
            s += norm(p + "norm.weight", d)
            s += bf16(p + "markov_head.embed.weight", vocab, k, std=1.0)
            s += bf16(p + "markov_head.head.weight", vocab, k)
            s += bf16(p + "confidence_head.proj.weight", 1, d + k)
        out.append(s)
    if t.get("engram_layer_ids"):
        out.extend(engrams(t))
    return out


def write_shard(path, tensors, seed, fast):
    """One safetensors file: header length, JSON header padded with spaces, data without gaps."""
    tensors = sorted(tensors, key=lambda x: -ITEM[x.dtype])    # stable: keeps weight, scale pairs
    head, pos = {"__metadata__": {"format": "pt"}}, 0
    for x in tensors:
        head[x.name] = {"dtype": x.dtype, "shape": list(x.shape),
                        "data_offsets": [pos, pos + x.nbytes]}
        pos += x.nbytes
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors:
            done = 0
            for piece in x.pieces(seed, fast):
                f.write(piece)
                done += len(piece)
            assert done == x.nbytes, x.name
    return pos


def stub_tokenizer(vocab):
    """Byte-level BPE file whose words are w0, " W0", w1, " W1", ...; they come back exactly."""
    words = {("w%d" if i % 2 == 0 else "\u0120W%d") % (i // 2): i for i in range(vocab)}
    split = {"type": "Split", "pattern": {"Regex": "w[0-9]+| W[0-9]+"}, "behavior": "Isolated",
             "invert": False}
    byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte]},
            "post_processor": None, "decoder": byte,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                      "vocab": words, "merges": []}}


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("config")
    ap.add_argument("out")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--fast", action="store_true", help="draw FP4 and Engram-table codes directly")
    ap.add_argument("--no-vision", action="store_true")
    ap.add_argument("--no-mtp", action="store_true")
    args = ap.parse_args()
    with open(args.config) as f:
        cfg = json.load(f)
    t = cfg["text_config"]
    groups = shards(cfg, not args.no_vision, not args.no_mtp)
    os.makedirs(args.out, exist_ok=True)

    def save(name, obj, indent=2):
        with open(os.path.join(args.out, name), "w", encoding="utf-8") as f:
            json.dump(obj, f, indent=indent, ensure_ascii=False)
            f.write("\n")

    weight_map, total = {}, 0
    for i, group in enumerate(groups):
        name = f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        total += write_shard(os.path.join(args.out, name), group, args.seed, args.fast)
        weight_map.update({x.name: name for x in group})
    save("model.safetensors.index.json",
         {"metadata": {"total_size": total}, "weight_map": weight_map})
    save("config.json", cfg)
    if t.get("engram_compressed_vocab_size") == t["vocab_size"] // 2:
        save("tokenizer.json", stub_tokenizer(t["vocab_size"]), indent=None)
        save("tokenizer_config.json",
             {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": False})
    print(f"{len(weight_map)} tensors, {total} bytes, {len(groups)} shards")


if __name__ == "__main__":
    main()
