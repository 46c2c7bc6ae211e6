"""config.json of DeepSeek-V4.1 with its default rules (spec section 1.1). Names are the file's."""


class Record(dict):
    """A dict whose entries are also attributes."""
    __getattr__ = dict.__getitem__


RELEASED_RATIOS = [0, 0] + [2] * 18 + [1] * 20
RELEASED_KV_SOURCES = [2, 8, 14, 20]
RELEASED_INDEX_SOURCES = [2, 8, 14, 20, 24, 28, 32, 36]

_TEXT = {  # field: value when it is absent
    "vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 64,
    "head_dim": 512, "q_lora_rank": 1280, "qk_rope_head_dim": 64, "rope_theta": 10000.0,
    "compress_rope_theta": 160000.0, "sliding_window": 128, "candidate_topk_blocks": 2048,
    "candidate_block_size": 8, "index_n_heads": 32, "index_head_dim": 128, "index_topk": 512,
    "o_groups": 8, "o_lora_rank": 1024, "n_routed_experts": 384, "num_experts_per_tok": 6,
    "moe_intermediate_size": 2304, "n_shared_experts": 1, "scoring_func": "sqrtsoftplus",
    "gate_temp": 1.0, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0,
    "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "rms_norm_eps": 1e-20,
    "engram_layer_ids": [], "engram_vocab_size": 16000000, "engram_max_ngram_size": 4,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2,
    "engram_compressed_vocab_size": 99092, "engram_num_embeddings": None,
    "num_nextn_predict_layers": 3, "dspark_block_size": 5, "dspark_noise_token_id": 128799,
    "dspark_markov_rank": 256, "dspark_n_routed_experts": 0, "dspark_num_experts_per_tok": 0,
    "compress_ratios": None, "kv_source_layer_ids": None, "index_source_layer_ids": None,
    "candidate_source_layer_id": None, "dspark_target_layer_ids": None, "rope_scaling": None,
}
_VISION = {
    "num_hidden_layers": 32, "hidden_size": 1024, "num_attention_heads": 16,
    "intermediate_size": 2816, "patch_size": 14, "rope_theta": 10000.0, "downsample_ratio": 3,
    "max_image_tokens": 1024, "min_pixels": 295936, "max_wh_ratio": None,
}


def _filled(given, defaults):
    return Record({k: d if given.get(k) is None else given[k] for k, d in defaults.items()})


def default_ratios(layers):
    if layers == len(RELEASED_RATIOS):
        return list(RELEASED_RATIOS)
    start = min(2, layers)
    encoder = max(0, (layers - start + 1) // 2)
    return [0] * start + [2] * encoder + [1] * (layers - start - encoder)


class Config(Record):
    """The text model's fields; `vision` holds the tower's, None without one."""

    def __init__(self, raw):
        text = dict(raw.get("text_config") or {})
        text.setdefault("engram_pad_token_id", text.get("engram_pad_id"))  # both spellings exist
        super().__init__(_filled(text, _TEXT))
        vision = raw.get("vision_config")
        self["vision"] = None if vision is None else _filled(vision, _VISION)
        self["image_token_id"] = raw.get("image_token_id", 129264)
        self._fill_lists()
        self["dspark_n_routed_experts"] = self.dspark_n_routed_experts or self.n_routed_experts
        self["dspark_num_experts_per_tok"] = (self.dspark_num_experts_per_tok or
                                              self.num_experts_per_tok)
        self._validate()

    def _fill_lists(self):
        layers = self.num_hidden_layers
        if self.compress_ratios is None:
            self["compress_ratios"] = default_ratios(layers)
        ratios = self["compress_ratios"] = list(self.compress_ratios)[:layers]
        if self.kv_source_layer_ids is None:
            run_starts = [l for l in range(layers)
                          if ratios[l] > 0 and (l == 0 or ratios[l - 1] != ratios[l])]
            self["kv_source_layer_ids"] = (
                list(RELEASED_KV_SOURCES) if ratios == RELEASED_RATIOS else run_starts)
        sources = list(self.kv_source_layer_ids)
        if self.index_source_layer_ids is None:
            self["index_source_layer_ids"] = (
                list(RELEASED_INDEX_SOURCES) if sources == RELEASED_KV_SOURCES else sources)
        if self.candidate_source_layer_id is None:
            self["candidate_source_layer_id"] = sources[-1] if sources else -1
        if self.dspark_target_layer_ids is None:
            self["dspark_target_layer_ids"] = [l for l in range(layers) if l not in sources][-3:]

    def _validate(self):
        for l, ratio in enumerate(self.compress_ratios):
            assert ratio == 0 or self.kv_source(l) >= 0, f"layer {l} has no kv source"
        for l in self.index_source_layer_ids:
            ratio = self.compress_ratios[l]
            source = self.kv_source(l)
            assert ratio > 0 and self.compress_ratios[source] == ratio, f"index source {l}"
        assert set(self.kv_source_layer_ids) <= set(self.index_source_layer_ids), \
            "a kv source must make index keys"
        candidate = self.candidate_source_layer_id
        assert candidate < 0 or candidate in self.index_source_layer_ids, "candidate source"
        assert self.n_shared_experts == 1, "exactly one shared expert"

    def kv_source(self, layer):
        """The layer whose compressed rows `layer` reads; -1 without one (section 3.10)."""
        return max((s for s in self.kv_source_layer_ids if s <= layer), default=-1)
