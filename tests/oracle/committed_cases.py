"""Makes tests/golden/v41-oracle-a and -b, whose configurations the official fixtures lack.

    PYTHONPATH=tests python3 -m oracle.committed_cases v41-oracle-a
"""
import pathlib
import sys

import numpy as np

from oracle.golden_folder import GoldenFolder
from oracle.synthetic import write_checkpoint

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
SEED = 5  # of the prompt
BASE = dict(
    model_type="deepseek_v41_text", vocab_size=128, hidden_size=64, num_attention_heads=2,
    head_dim=32, qk_rope_head_dim=16, q_lora_rank=32, o_groups=2, o_lora_rank=32, sliding_window=8,
    rope_theta=10000, compress_rope_theta=160000, index_n_heads=2, index_head_dim=32,
    n_routed_experts=4, moe_intermediate_size=32, engram_vocab_size=30, engram_n_heads=1,
    engram_head_dim=32, engram_compressed_vocab_size=64, num_nextn_predict_layers=0,
    max_position_embeddings=128)
CASES = {
    # Every list by its default rule, sigmoid router whose weights are not normalised, no YaRN, no
    # Engram, three streams, a clamp that bites, a candidate pool smaller than top-k wants.
    "v41-oracle-a": dict(
        num_hidden_layers=4, scoring_func="sigmoid", gate_temp=0.7, norm_topk_prob=False,
        num_experts_per_tok=3, hc_mult=3, swiglu_limit=0.5, index_topk=5, candidate_topk_blocks=2,
        candidate_block_size=4),
    # Softmax router with one expert, ratio 1 before ratio 2, no candidates, bigram Engram in the
    # first layer, odd window, no clamp, YaRN.
    "v41-oracle-b": dict(
        num_hidden_layers=5, scoring_func="softmax", num_experts_per_tok=1,
        compress_ratios=[1, 1, 2, 2, 0], kv_source_layer_ids=[0, 2],
        index_source_layer_ids=[0, 1, 2], candidate_source_layer_id=-1, sliding_window=5,
        index_topk=7, hc_mult=2, hc_sinkhorn_iters=3, swiglu_limit=0, engram_layer_ids=[0],
        engram_max_ngram_size=2, gate_temp=2.0,
        rope_scaling=dict(rope_type="yarn", factor=4, beta_fast=32, beta_slow=1,
                          original_max_position_embeddings=32)),
}


def make(name):
    folder = GOLDEN / name
    raw = dict(
        model_type="deepseek_v41", architectures=["DeepseekV41ForCausalLM"], image_token_id=100,
        quantization_config=dict(quant_method="fp8", activation_scheme="dynamic",
                                 weight_block_size=[32, 32], scale_fmt="ue8m0",
                                 expert_dtype="fp4"),
        text_config={**BASE, **CASES[name]})
    write_checkpoint(raw, folder / "checkpoint")
    golden = GoldenFolder(folder)
    ids = np.random.default_rng(SEED).integers(3, BASE["vocab_size"], 41)
    golden.prefill("prefill-n041", ids, ("smooth", "f32", "unrounded_p"))
    golden.taps("taps-n017-unrounded-p", ids[:17], "unrounded_p")
    golden.finish()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(f"usage: python3 -m oracle.committed_cases {'|'.join(CASES)}")
    make(sys.argv[1])
