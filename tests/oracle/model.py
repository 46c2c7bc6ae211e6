"""The model of DeepSeek-V4.1-Flash: the data flow of spec section 0 and its head.

    model = load(FOLDER, ARITHMETICS["unrounded_p"])
    logits, main_hidden = model.forward(ids, WholeContext(model.c))      # the whole prefix
    state = SequenceState(model.c)                                       # or in chunks
    logits, main_hidden = model.forward(ids[:33], state)
    model.seed_drafts(main_hidden, 0, state)
    tokens, draft_logits, confidence = model.draft(y, 32, state)
    model.taps = {}                                                      # collects intermediates
"""
import json
import os

import numpy as np

from oracle.checkpoint import Checkpoint
from oracle.config import Config
from oracle.drafts import Drafts
from oracle.engram import DEAD, Engram, compressed_map
from oracle.numerics import rope_frequencies
from oracle.pictures import END, IMAGE, NEWLINE, START, TEXT
from oracle.vision import Vision


class Model(Drafts, Engram, Vision):
    def __init__(self, config, weights, num, token_map=None):
        self.c, self.w, self.num, self.taps = config, weights, num, None
        self.token_map = token_map
        rotary = config.qk_rope_head_dim
        self.frequencies = {
            False: rope_frequencies(rotary, config.rope_theta),
            True: rope_frequencies(rotary, config.compress_rope_theta, config.rope_scaling)}
        self.set_up_engram()

    def embed(self, ids, kinds, picture_rows):
        """2.1 and 6.4: picture positions hold learned vectors or the aligner's rows."""
        num, w = self.num, self.w
        e = num.f(w.plain("embed.weight")[ids])
        for kind, name in ((START, "image_start"), (NEWLINE, "image_newline"), (END, "image_end")):
            if (kinds == kind).any():
                e[kinds == kind] = num.f(w.plain(name))
        if (kinds == IMAGE).any():
            e[kinds == IMAGE] = picture_rows
        return self.tap("embed", e)

    def forward(self, ids, context, kinds=None, picture_rows=None):
        """One chunk behind the context. ids [n], pictures already expanded; kinds [n] of
        pictures.py; picture_rows: for the IMAGE positions of the chunk
        -> (logits [n, V], main hidden M [n, targets·D] or None)."""
        c, num = self.c, self.num
        ids = np.asarray(ids, np.int64)
        kinds = np.full(len(ids), TEXT) if kinds is None else np.asarray(kinds)
        p0, is_picture = context.n, kinds != TEXT
        context.begin(p0, len(ids))
        pos = p0 + np.arange(len(ids))
        streams, pre = self.initial_streams(self.embed(ids, kinds, picture_rows))
        compressed = ids if self.token_map is None else self.token_map[ids]
        compressed = np.where(is_picture, DEAD, compressed)
        rows = self.engram_rows(compressed, context.history())
        flow, targets = {}, {}
        for l in range(c.num_hidden_layers):
            if l in c.engram_layer_ids:
                streams = self.inject(l, streams, rows[l], is_picture)
            streams = self.tap(f"layers.{l}.x_in", streams)
            pre = self.tap(f"layers.{l}.pre_in", pre)
            if l in c.dspark_target_layer_ids:
                targets[l] = num.bf(streams.sum(1) / num.dtype(c.hc_mult))
            streams, pre = self.block(f"layers.{l}", streams, pre,
                                      lambda x: self.attention(l, x, pos, context, flow),
                                      (c.n_routed_experts, c.num_experts_per_tok), is_picture)
        context.end(compressed)
        return self.head(streams, pre), self.main_hidden(targets)

    def head(self, streams, pre):
        """8.4."""
        h = self.tap("final_h", self.collapse(streams, pre))
        normed = self.tap("final_norm", self.norm(h, "norm"))
        return self.tap("logits", self.num.mm(normed, self.w.plain("head.weight")))

    def main_hidden(self, targets):
        """7.2: what the drafter is conditioned on."""
        if not self.c.num_nextn_predict_layers or not targets:
            return None
        return self.tap("main_hidden", np.concatenate(
            [targets[l] for l in self.c.dspark_target_layer_ids], -1))


def load(folder, num):
    """A checkpoint folder in one arithmetic."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = Config(json.load(f))
    token_map = None
    if config.engram_layer_ids:
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
            token_map = compressed_map(json.load(f), config.engram_compressed_vocab_size)
    return Model(config, Checkpoint(folder), num, token_map)
