#!/usr/bin/env python3
"""Writes the released V4.1-Flash checkpoint's layout with holes for its data.

    make_sparse_v41.py DIR [TOKENIZER_DIR]

Names, shapes and dtypes are the released ones (96,085 tensors, 510,286,023,000 payload bytes), so
loaders meet the true header sizes; every weight reads as zero. Takes 18 MB of disk where files may
have holes. TOKENIZER_DIR lends tokenizer.json and tokenizer_config.json.
"""
import glob
import json
import os
import shutil
import struct
import sys

SIZE = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "F8_E8M0": 1, "I8": 1}
# Shape letters of docs/glossary.md.
D, L, E, F, V, H, HD, QR, G, O_RANK = 5120, 40, 384, 2304, 129280, 64, 512, 1280, 8, 1024
STREAMS, DRAFT_EXPERTS, MARKOV_RANK = 4, 128, 256
INDEX_HEADS, INDEX_DIM = 32, 128
VISION_DIM, VISION_INNER, VISION_BLOCKS = 1024, 2816, 32
KV_SOURCES = [2, 8, 14, 20]
INDEX_SOURCES = [2, 8, 14, 20, 24, 28, 32, 36]
ENGRAM_ROWS = {1: 384006168, 14: 384016682}
ENGRAM_DIM, ENGRAM_COLUMNS = 256, 24
TENSORS, PAYLOAD = 96085, 510286023000


def blocks(n):
    return -(-n // 32)


def fp8(name, rows, cols):
    return [(name + ".weight", "F8_E4M3", [rows, cols]),
            (name + ".scale", "F8_E8M0", [blocks(rows), blocks(cols)])]


def fp4(name, rows, cols):
    return [(name + ".weight", "I8", [rows, cols // 2]),
            (name + ".scale", "F8_E8M0", [rows, cols // 32])]


def bf16(name, *shape):
    return [(name, "BF16", list(shape))]


def f32(name, *shape):
    return [(name, "F32", list(shape))]


def linear(name, rows, cols):
    return bf16(name + ".weight", rows, cols) + bf16(name + ".bias", rows)


def attention(p):
    return (f32(p + "attn_sink", H) + bf16(p + "q_norm.weight", QR) + bf16(p + "kv_norm.weight", HD)
            + fp8(p + "wq_a", QR, D) + fp8(p + "wq_b", H * HD, QR) + fp8(p + "wkv", HD, D)
            + fp8(p + "wo_a", G * O_RANK, H * HD // G) + fp8(p + "wo_b", D, G * O_RANK))


def ffn(p, experts):
    t = bf16(p + "gate.weight", experts, D)
    t += f32(p + "gate.bias", experts) + f32(p + "gate.bias_vl", experts)
    for e in range(experts):
        w = f"{p}experts.{e}."
        t += fp4(w + "w1", F, D) + fp4(w + "w3", F, D) + fp4(w + "w2", D, F)
    w = p + "shared_experts."
    return t + fp8(w + "w1", F, D) + fp8(w + "w3", F, D) + fp8(w + "w2", D, F)


def block(p, experts):
    """What a backbone layer and a DSpark stage have in common."""
    t = bf16(p + "attn_norm.weight", D) + bf16(p + "ffn_norm.weight", D)
    coefficients = (2 + STREAMS) * STREAMS
    for site in ("attn", "ffn"):
        t += f32(f"{p}hc_{site}_fn", coefficients, STREAMS * D)
        t += f32(f"{p}hc_{site}_base", coefficients) + f32(f"{p}hc_{site}_scale", 3)
    return t + attention(p + "attn.") + ffn(p + "ffn.", experts)


def layer(l):
    t, a = block(f"layers.{l}.", E), f"layers.{l}.attn."
    if l in KV_SOURCES:
        t += bf16(a + "compressor.wkv.weight", HD, D) + bf16(a + "compressor.norm.weight", HD)
        if l != 20:                                     # ratio 2 only
            t += bf16(a + "compressor.wgate.weight", HD, D)
        t += bf16(a + "indexer.wk.weight", INDEX_DIM, HD)
        t += bf16(a + "indexer.k_norm.weight", INDEX_DIM)
    if l in INDEX_SOURCES:
        t += fp8(a + "indexer.wq_b", INDEX_HEADS * INDEX_DIM, QR)
        t += bf16(a + "indexer.weights_proj.weight", INDEX_HEADS, D)
    return t


def engram(l):
    p = f"layers.{l}.engram."
    t = [(p + "embed.weight", "F8_E4M3", [ENGRAM_ROWS[l], ENGRAM_DIM]),
         (p + "embed.scale", "F8_E8M0", [ENGRAM_ROWS[l], ENGRAM_DIM // 32])]
    t += fp8(p + "wkv", (STREAMS + 1) * D, ENGRAM_COLUMNS * ENGRAM_DIM)
    return t + bf16(p + "q_weight", STREAMS, D) + bf16(p + "k_weight", STREAMS, D)


def vision():
    t = linear("vision.patch_embed.proj", VISION_DIM, 3 * 14 * 14)
    t += bf16("vision.norm.weight", VISION_DIM)
    for b in range(VISION_BLOCKS):
        p = f"vision.blocks.{b}."
        t += bf16(p + "norm1.weight", VISION_DIM) + bf16(p + "norm2.weight", VISION_DIM)
        t += linear(p + "attn.wqkv", 3 * VISION_DIM, VISION_DIM)
        t += linear(p + "attn.wo", VISION_DIM, VISION_DIM)
        t += bf16(p + "mlp.w1.weight", 2 * VISION_INNER, VISION_DIM)
        t += bf16(p + "mlp.w2.weight", VISION_DIM, VISION_INNER)
    return t + linear("aligner.w1", D, 9 * VISION_DIM) + linear("aligner.w2", D, D)


def stage(i):
    p = f"mtp.{i}."
    t = block(p, DRAFT_EXPERTS)
    if i == 0:
        t += fp8(p + "main_proj", D, 3 * D) + bf16(p + "main_norm.weight", D)
    if i == 2:
        t += bf16(p + "norm.weight", D) + bf16(p + "markov_head.embed.weight", V, MARKOV_RANK)
        t += bf16(p + "markov_head.head.weight", V, MARKOV_RANK)
        t += bf16(p + "confidence_head.proj.weight", 1, D + MARKOV_RANK)
    return t


def shards():
    yield vision()
    yield bf16("embed.weight", V, D) + [t for n in ("start", "newline", "end")
                                        for t in bf16("image_" + n, D)]
    yield from (layer(l) for l in range(L))
    yield bf16("norm.weight", D) + bf16("head.weight", V, D)
    yield from (stage(i) for i in range(3))
    yield engram(1)
    yield engram(14)


TEXT = {
    "model_type": "deepseek_v41_text", "vocab_size": V, "hidden_size": D, "num_hidden_layers": L,
    "num_attention_heads": H, "num_key_value_heads": 1, "head_dim": HD, "q_lora_rank": QR,
    "qk_rope_head_dim": 64, "rope_theta": 10000, "compress_rope_theta": 160000,
    "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1,
                     "original_max_position_embeddings": 65536},
    "max_position_embeddings": 1048576, "sliding_window": 128,
    "compress_ratios": [0, 0] + [2] * 18 + [1] * 20 + [0] * 3, "kv_source_layer_ids": KV_SOURCES,
    "index_source_layer_ids": INDEX_SOURCES, "candidate_source_layer_id": 20,
    "candidate_topk_blocks": 2048, "candidate_block_size": 8, "index_n_heads": INDEX_HEADS,
    "index_head_dim": INDEX_DIM, "index_topk": 512, "o_groups": G, "o_lora_rank": O_RANK,
    "moe_intermediate_size": F, "n_routed_experts": E, "n_shared_experts": 1,
    "num_experts_per_tok": 6, "scoring_func": "sqrtsoftplus", "norm_topk_prob": True,
    "routed_scaling_factor": 1.5, "topk_method": "noaux_tc", "swiglu_limit": 10.0,
    "hidden_act": "silu", "hc_mult": STREAMS, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6,
    "rms_norm_eps": 1e-20, "engram_layer_ids": list(ENGRAM_ROWS),
    "engram_num_embeddings": list(ENGRAM_ROWS.values()), "engram_vocab_size": 16000000,
    "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": ENGRAM_DIM,
    "engram_pad_token_id": 2, "engram_compressed_vocab_size": 99092,
    "num_nextn_predict_layers": 3, "dspark_block_size": 5, "dspark_noise_token_id": 128799,
    "dspark_markov_rank": MARKOV_RANK, "dspark_target_layer_ids": [37, 38, 39],
    "dspark_n_routed_experts": DRAFT_EXPERTS, "dspark_num_experts_per_tok": 3,
    "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 1,
    "pad_token_id": 2}
CONFIG = {
    "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "dtype": "bfloat16",
    "transformers_version": "5.6.0", "image_token_id": 129264, "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic",
                            "weight_block_size": [32, 32], "scale_fmt": "ue8m0",
                            "expert_dtype": "fp4"},
    "text_config": TEXT,
    "vision_config": {"model_type": "deepseek_v41_vision", "num_hidden_layers": VISION_BLOCKS,
                      "hidden_size": VISION_DIM, "num_attention_heads": 16,
                      "intermediate_size": VISION_INNER, "patch_size": 14, "rope_theta": 10000,
                      "downsample_ratio": 3, "max_image_tokens": 1024, "min_pixels": 295936,
                      "max_wh_ratio": None}}


def write_shard(path, tensors):
    """Header and a hole of the data's size; returns that size."""
    header, at = {}, 0
    for name, dtype, shape in tensors:
        size = SIZE[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return at


def main(out, tokenizer_dir=None):
    os.makedirs(out, exist_ok=True)
    groups, weight_map, payload = list(shards()), {}, 0
    for i, tensors in enumerate(groups, 1):
        name = f"model-{i:05d}-of-{len(groups):05d}.safetensors"
        payload += write_shard(os.path.join(out, name), tensors)
        weight_map.update({tensor: name for tensor, _, _ in tensors})
    assert (len(weight_map), payload) == (TENSORS, PAYLOAD), (len(weight_map), payload)
    with open(os.path.join(out, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"metadata": {"total_size": payload}, "weight_map": weight_map}, f)
    with open(os.path.join(out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(CONFIG, f, indent=1)
    for path in glob.glob(os.path.join(tokenizer_dir, "tokenizer*.json")) if tokenizer_dir else []:
        shutil.copy(path, out)
    print(len(weight_map), "tensors,", payload, "bytes")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
