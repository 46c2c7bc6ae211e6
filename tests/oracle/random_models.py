"""Draws V4.1 configurations that the specification allows, small enough for the oracle, and golden
folders for them. Weights are those of tools/make_v41_checkpoint.py, another seed each time."""
import copy
import json
import os

import numpy as np

from oracle import maker
from oracle.codecs import F32, bf16, e4m3_encode
from oracle.config import Config
from oracle.engram import table_rows
from oracle.golden_folder import GoldenFolder

CONTEXT = 256
LISTS = ("compress_ratios", "kv_source_layer_ids", "index_source_layer_ids",
         "candidate_source_layer_id", "dspark_target_layer_ids")


class Draw:
    """Random choices; rng is a numpy Generator."""

    def __init__(self, rng):
        self.rng = rng

    def one(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def chance(self, share):
        return bool(self.rng.random() < share)

    def length(self, most):
        """Of a prompt: mostly long, so that windows and lists overflow."""
        return self.whole(most // 2, most) if self.chance(0.75) else self.whole(1, 12)

    def some(self, options, share):
        return [option for option in options if self.chance(share)]


def draw_sizes(d):
    heads, index_dim, head_dim = d.one(1, 2, 3, 4, 6), 32 * d.whole(1, 3), 32 * d.whole(1, 3)
    groups = d.one(*[g for g in (1, 2, 3, 4, 6) if heads % g == 0])
    ranks = [rank for rank in (8, 16, 24, 32, 48, 64, 96) if groups * rank % 32 == 0]
    vocab = d.whole(40, 300)
    return dict(
        model_type="deepseek_v41_text", vocab_size=vocab, hidden_size=32 * d.whole(1, 5),
        num_attention_heads=heads, num_key_value_heads=1, head_dim=head_dim,
        q_lora_rank=32 * d.whole(1, 3), o_groups=groups, o_lora_rank=d.one(*ranks),
        qk_rope_head_dim=2 * d.whole(1, min(head_dim, index_dim) // 2),
        rope_theta=d.one(10000, 500.0), compress_rope_theta=d.one(160000, 3000.0),
        max_position_embeddings=CONTEXT, sliding_window=d.one(1, 2, 3, 5, 8, 13, 16, 33, 128),
        index_n_heads=d.one(1, 2, 3, 4, 8), index_head_dim=index_dim,
        index_topk=d.one(1, 2, 5, 8, 16, 64), candidate_topk_blocks=d.one(1, 2, 3, 8),
        candidate_block_size=d.one(1, 2, 3, 4, 8), rms_norm_eps=d.one(1e-20, 1e-20, 1e-6),
        hc_mult=d.one(1, 2, 3, 4, 4, 5), hc_sinkhorn_iters=d.one(1, 2, 5, 20, 20),
        hc_eps=d.one(1e-6, 1e-6, 1e-3))


def draw_experts(d):
    experts = d.whole(1, 9)
    return dict(
        n_routed_experts=experts, num_experts_per_tok=d.one(1, min(2, experts), experts),
        n_shared_experts=1, moe_intermediate_size=32 * d.whole(1, 3),
        scoring_func=d.one("sqrtsoftplus", "softmax", "sigmoid"), gate_temp=d.one(1.0, 0.7, 2.0),
        norm_topk_prob=d.chance(0.7), routed_scaling_factor=d.one(1.5, 1.0, 2.5),
        swiglu_limit=d.one(10.0, 0.5, 0, -1))


def draw_ratios(d, layers):
    kind = d.one("zeros", "ones", "twos", "runs", "runs", "any", "any", "any")
    if kind in ("zeros", "ones", "twos"):
        return [{"zeros": 0, "ones": 1, "twos": 2}[kind]] * layers
    if kind == "any":
        return [d.whole(0, 2) for _ in range(layers)]
    first, second = d.whole(0, layers), d.whole(0, layers)
    zeros, twos = min(first, second), abs(first - second)
    return [0] * zeros + [2] * twos + [1] * (layers - zeros - twos)


def draw_sources(d, ratios):
    """Every change of ratio needs a kv source; more of them, and more index sources, at random."""
    kv, last = [], 0
    for l, ratio in enumerate(ratios):
        if ratio and (ratio != last or d.chance(0.2)):
            kv.append(l)
        last = ratio or last
    index = sorted({*kv, *d.some([l for l, ratio in enumerate(ratios) if ratio], 0.4)})
    # Candidates restrict later index sources, which must look at groups of the same ratio.
    possible = [l for l in index if len({ratios[m] for m in index if m >= l}) == 1]
    candidate = d.one(*possible) if possible and d.chance(0.7) else -1
    return dict(compress_ratios=ratios, kv_source_layer_ids=kv, index_source_layer_ids=index,
                candidate_source_layer_id=candidate)


def draw_engram(d, layers, vocab):
    chosen = d.some(range(layers), 0.4) if d.chance(0.7) else []
    return dict(engram_layer_ids=chosen, engram_vocab_size=d.whole(2, 120),
                engram_max_ngram_size=d.whole(2, 5), engram_n_heads=d.whole(1, 3),
                engram_head_dim=d.one(32, 64), engram_pad_token_id=d.whole(0, vocab - 1),
                engram_compressed_vocab_size=(vocab + 1) // 2)


def draw_drafts(d, layers, vocab, experts):
    stages = d.whole(0, 3)
    targets = sorted({*d.some(range(layers), 0.4), d.whole(0, layers - 1)})
    drafting = d.whole(1, experts)
    return dict(num_nextn_predict_layers=stages, dspark_block_size=d.whole(1, 6),
                dspark_noise_token_id=d.whole(0, vocab - 1), dspark_markov_rank=d.one(8, 20, 32),
                dspark_target_layer_ids=targets, dspark_n_routed_experts=drafting,
                dspark_num_experts_per_tok=d.whole(1, drafting))


def draw_vision(d):
    heads = d.one(1, 2, 3, 4)
    return dict(num_hidden_layers=d.whole(1, 3), hidden_size=4 * heads * d.whole(1, 6),
                num_attention_heads=heads, intermediate_size=d.one(32, 40, 96),
                patch_size=d.one(2, 4, 7, 14), downsample_ratio=d.one(1, 2, 3, 3),
                rope_theta=d.one(10000, 100.0), max_image_tokens=d.whole(12, 64),
                min_pixels=d.whole(1, 8000), max_wh_ratio=d.one(None, None, 2, 3.5))


def draw_config(rng):
    """The content of a config.json."""
    d = Draw(rng)
    layers = d.one(1, 2, 3, 4, 5, 6, 8)
    text = dict(**draw_sizes(d), **draw_experts(d), num_hidden_layers=layers)
    text.update(draw_sources(d, draw_ratios(d, layers)))
    text.update(draw_engram(d, layers, text["vocab_size"]))
    text.update(draw_drafts(d, layers, text["vocab_size"], text["n_routed_experts"]))
    if d.chance(0.6):
        text["rope_scaling"] = dict(rope_type="yarn", factor=d.one(4, 16, 2.5),
                                    beta_fast=d.one(32, 8), beta_slow=d.one(1, 2),
                                    original_max_position_embeddings=d.one(16, 64, 256))
    raw = dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41",
               image_token_id=d.whole(0, text["vocab_size"] - 1),
               quantization_config=dict(quant_method="fp8", activation_scheme="dynamic",
                                        weight_block_size=[32, 32], scale_fmt="ue8m0",
                                        expert_dtype="fp4"),
               text_config=text)
    if d.chance(0.7):
        raw["vision_config"] = dict(model_type="deepseek_v41_vision", **draw_vision(d))
    if d.chance(0.25):  # leave the lists to their default rules
        for name in LISTS:
            del text[name]
        if not Config(raw).dspark_target_layer_ids:  # every layer is a kv source
            text["num_nextn_predict_layers"] = 0
    text["engram_num_embeddings"] = table_rows(Config(raw))
    return raw


def write_checkpoint(raw, folder, seed):
    """raw: the content of config.json. The maker wants its lists written out."""
    os.makedirs(folder)
    full = copy.deepcopy(raw)
    config = Config(raw)
    full["text_config"].update({name: config[name] for name in LISTS})
    groups = maker.shards(full)
    weight_map = {}
    for i, group in enumerate(groups):
        name = f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        maker.write_shard(os.path.join(folder, name), group, seed, False)
        weight_map.update({tensor.name: name for tensor in group})
    files = {"config.json": raw,
             "model.safetensors.index.json": dict(metadata={}, weight_map=weight_map),
             "tokenizer.json": maker.stub_tokenizer(config.vocab_size)}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f, indent=1)


def draw_picture(d):
    """Shapes, noise and smooth slopes, of any aspect ratio."""
    width, height = d.whole(1, 90), d.whole(1, 90)
    if d.chance(0.3):
        width, height = d.one((width * 8, 1 + height // 9), (1 + width // 9, height * 8))
    noise = d.rng.integers(0, 256, (height, width, 3))
    slope = (np.arange(height)[:, None, None] * 3 + np.arange(width)[None, :, None]) % 256
    return (d.one(noise, slope + noise // 16, slope * np.ones((1, 1, 3))) % 256).astype(np.uint8)


def draw_quantiser_input(d):
    """Ordinary rows, and rows with zeros, denormals, ties and saturation."""
    x = d.rng.normal(0, 1, (12, 32 * d.whole(1, 3)))
    x[1] *= 1e-30
    x[2] *= 1e37
    x[3] = d.rng.choice([0.0, -0.0, 0.25, 0.75, 1.25, 2.5, 3.5, 5, 6, -7, 448, 464], x.shape[1])
    x[4] = 0
    x[5] *= 10.0 ** d.rng.integers(-12, 12, x.shape[1])
    x[6] *= 1e-3
    return bf16(x.astype(F32))


def draw_products(d):
    """Quantised products with partial blocks of rows."""
    for dtype in ("F8_E4M3", "I8", "F8_E4M3", "I8"):
        m, n, k = d.whole(1, 17), d.whole(1, 80), 32 * d.whole(1, 9)
        x = bf16(d.rng.normal(0, 10.0 ** d.whole(-3, 3), (m, k)).astype(F32))
        scale_rows = n if dtype == "I8" else -(-n // 32)
        scale = d.rng.integers(115, 128, (scale_rows, k // 32)).astype(np.uint8)
        if dtype == "I8":
            yield dtype, x, d.rng.integers(0, 256, (n, k // 2)).astype(np.uint8), scale
        else:
            weight = d.rng.normal(0, 60, (n, k)).astype(F32)
            yield dtype, x, e4m3_encode(weight), scale


def write_golden(folder, seed, length_max=70, given=None):
    """One random model and its golden folder. Returns the content of config.json: `given`, or a
    drawn one."""
    rng = np.random.default_rng(seed)
    d = Draw(rng)
    raw = given or draw_config(rng)
    write_checkpoint(raw, os.path.join(folder, "checkpoint"), seed)
    golden = GoldenFolder(folder)
    vocab = raw["text_config"]["vocab_size"]

    def ids(count):
        return rng.integers(0, vocab, count)
    golden.prefill("prefill", ids(d.length(length_max)))
    for arithmetic in ("unrounded_p", "official", "smooth"):
        golden.taps("taps-" + arithmetic.replace("_", "-"), ids(d.length(length_max // 2)),
                    arithmetic, has_inner=d.chance(0.5))
    start = d.length(length_max // 2)
    golden.decode("decode", ids(start + d.whole(0, 8)), start)
    golden.clamped("clamp", ids(d.whole(1, 20)), d.one(0.5, 0.1, 0))
    golden.greedy("greedy", ids(d.whole(1, 12)), 6)
    golden.quantisers("quantisers", draw_quantiser_input(d))
    golden.gemm("gemm", draw_products(d))
    if golden.config.vision is not None:
        draw_picture_case(d, golden, ids)
    if golden.config.num_nextn_predict_layers:
        start = d.length(length_max // 2)
        positions = [start, start + d.whole(1, 3)]
        golden.dspark("dspark", ids(positions[-1] + 1), start, positions)
    golden.finish()
    return raw


def draw_picture_case(d, golden, ids):
    """One or two pictures in a text. A picture that no grid of the tower fits has no golden."""
    token, count = golden.config.image_token_id, d.whole(1, 2)
    images = [draw_picture(d) for _ in range(count)]
    prompt = []
    for last in [False] * count + [True]:
        text = ids(d.whole(0, 9))
        prompt += text[text != token].tolist() + ([] if last else [token])
    try:
        golden.picture("picture", prompt, images, ids(d.whole(0, 4)))
    except ValueError as does_not_fit:
        print(f"no picture: {does_not_fit}")
