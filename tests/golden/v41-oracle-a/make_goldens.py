"""Goldens of configurations that the official fixtures lack, made with the project's NumPy oracle.

    make_goldens.py ORACLE_DIR TOOLS_DIR OUT        writes OUT/v41-oracle-a and OUT/v41-oracle-b
"""
import json, os, struct, sys
import numpy as np
sys.path[:0] = sys.argv[1:3]
import make_v41_checkpoint as maker
import v41_oracle as o, v41_synth as synth, common
BASE = dict(model_type="deepseek_v41_text", vocab_size=128, hidden_size=64, num_attention_heads=2, head_dim=32,
    qk_rope_head_dim=16, q_lora_rank=32, o_groups=2, o_lora_rank=32, sliding_window=8, rope_theta=10000, compress_rope_theta=160000,
    index_n_heads=2, index_head_dim=32, n_routed_experts=4, moe_intermediate_size=32, engram_vocab_size=30, engram_n_heads=1,
    engram_head_dim=32, engram_compressed_vocab_size=64, num_nextn_predict_layers=0, max_position_embeddings=128)
CASES = {
 # every list by its default rule, sigmoid router without normalisation, no YaRN, no Engram, three streams, clamp active
 "v41-oracle-a": dict(num_hidden_layers=4, scoring_func="sigmoid", gate_temp=0.7, norm_topk_prob=False, num_experts_per_tok=3,
    hc_mult=3, swiglu_limit=0.5, index_topk=5, candidate_topk_blocks=2, candidate_block_size=4),
 # softmax router with one expert, no candidates, sources far apart, bigram Engram in the first layer, odd window, no clamp
 "v41-oracle-b": dict(num_hidden_layers=5, scoring_func="softmax", num_experts_per_tok=1, compress_ratios=[1,1,2,2,0],
    kv_source_layer_ids=[0,2], index_source_layer_ids=[0,1,2], candidate_source_layer_id=-1, sliding_window=5, index_topk=7,
    hc_mult=2, hc_sinkhorn_iters=3, swiglu_limit=0, engram_layer_ids=[0], engram_max_ngram_size=2, gate_temp=2.0,
    rope_scaling=dict(rope_type="yarn", factor=4, beta_fast=32, beta_slow=1, original_max_position_embeddings=32)),
}
full = synth.tensor_list
synth.tensor_list = lambda c: [t for t in full(c) if not t[0].startswith(("vision", "aligner", "image_"))]
for name, extra in CASES.items():
    folder = os.path.join(sys.argv[3], name)
    raw = dict(model_type="deepseek_v41", architectures=["DeepseekV41ForCausalLM"], image_token_id=100,
               quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[32,32], scale_fmt="ue8m0", expert_dtype="fp4"),
               text_config={**BASE, **extra})
    ck = os.path.join(folder, "checkpoint")
    # like the official fixtures: wo_b and w2 at an eighth, so that the random network is not chaotic
    values = synth.values
    synth.values = lambda n, s: values(n, s) * np.float32(0.125) if ".wo_b." in n or ".w2." in n else values(n, s)
    synth.write(raw, ck)
    synth.values = values
    json.dump(maker.stub_tokenizer(128), open(os.path.join(ck, "tokenizer.json"), "w"))
    json.dump(dict(metadata={}, weight_map={k: "model.safetensors" for k in common.read_safetensors(os.path.join(ck, "model.safetensors"))}), open(os.path.join(ck, "model.safetensors.index.json"), "w"))
    rng = np.random.default_rng(5)
    index = {}
    def write(case, kind, tensors, entry):
        synth.write_safetensors(os.path.join(folder, case + ".safetensors"), tensors)
        index[case] = dict(file=case + ".safetensors", kind=kind, **entry)
    ids = rng.integers(3, 128, 41)
    t = {"ids": ("I32", ids.astype(np.int32))}
    for suffix, num in (("_smooth", common.Numerics("f64", act_quant=False, kv_quant=False)), ("_f32", common.Numerics("f64")), ("_unrounded_p", common.Numerics("reference"))):
        m = o.load(ck, num); lg, _ = m.forward(ids, o.WholeContext(m.c)); t["logits" + suffix] = ("F32", lg.astype(np.float32))
    write("prefill-n041", "prefill", t, dict(n=41, ids=ids.tolist()))
    m = o.load(ck, common.Numerics("reference")); m.taps = {}
    m.forward(ids[:17], o.WholeContext(m.c))
    t = {"ids": ("I32", ids[:17].astype(np.int32))}
    for k, v in m.taps.items():
        if v is None or v.ndim == 0 or k in ("logits",) or v.size == 0: continue
        if v.dtype.kind in "iu": t[k] = ("I32", v.astype(np.int32))
        elif v.dtype.kind == "b": t[k] = ("U8", v.astype(np.uint8))
        else:
            b = common.bf16(v.astype(np.float32))
            same = np.array_equal(b, v.astype(np.float32)) and not any(x in k for x in ("hc_", "pre_in", "router", "score", "gate"))
            t[k] = ("BF16", common.bf16_encode(v)) if same else ("F32", v.astype(np.float32))
    write("taps-n017-unrounded-p", "taps", t, dict(n=17, ids=ids[:17].tolist(), arithmetic="unrounded_p"))
    json.dump(dict(reference="shared/oracle, NumPy", cases=index), open(os.path.join(folder, "index.json"), "w"))
