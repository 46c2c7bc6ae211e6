"""Writes golden folders of the form of tests/golden/v41-tiny (its README has the names) with the
oracle: one safetensors file a case, and index.json."""
import json
import os

import numpy as np

from oracle import codecs
from oracle.checkpoint import dequantise, write_safetensors
from oracle.codecs import F32
from oracle.model import Model, load
from oracle.numerics import ARITHMETICS
from oracle.pictures import START, place_pictures, resize_plan, span_kinds, span_length
from oracle.state import SequenceState, WholeContext

BASE = "official"  # the arithmetic whose tensors have no suffix, unless a case says so
ALL = tuple(ARITHMETICS)
# Taps that stay in f32 between the roundings of `reference`.
F32_TAPS = (".pre", ".post", ".comb", ".pre_in", ".scores", ".weights", ".gate", "index_score",
            "logits", "confidence")
DECODE_TAPS = ("topk", "router.ids", "router.weights", "engram.rows", "engram.gate", "attn_out",
               "ffn_out")
PICTURE_TAPS = ("x_in", "latent", "topk", "router.ids", "router.weights", "engram.x_in",
                "engram.rows", "engram.gate")
PICTURE_STAGES = {"vision.patches": "patches", "vision.out": "vit_out",
                  "aligner.out": "aligner_out"}


def stored(name, value):
    """A tap as (dtype in the file, raw array): BF16 where that loses nothing."""
    if value.dtype.kind in "iu":
        return "I32", value.astype(np.int32)
    if value.dtype.kind == "b":
        return "U8", value.astype(np.uint8)
    value = value.astype(F32)
    if name.endswith(F32_TAPS) or not np.array_equal(codecs.bf16(value), value):
        return "F32", value
    return "BF16", codecs.bf16_encode(value)


def _suffix(arithmetic):
    return "" if arithmetic == BASE else "_" + arithmetic


def _int32(values):
    return "I32", np.asarray(values, np.int32)


def _inner_taps(kind, count):
    """Endings of the taps that the official folders lack, among `count` layers or stages."""
    return (".wo_a_out", ".shared_out", *(f"{kind}.{i}.x_out" for i in range(count - 1)))


class GoldenFolder:
    """A folder with a checkpoint in `checkpoint/`; call one method a case, then finish()."""

    def __init__(self, path):
        self.path, self.cases, self.models = path, {}, {}
        self.config = self.model(BASE).c

    def model(self, arithmetic):
        """The model in one arithmetic, its taps empty and on."""
        if arithmetic not in self.models:
            first = next(iter(self.models.values()), None)
            num = ARITHMETICS[arithmetic]
            self.models[arithmetic] = (
                load(os.path.join(self.path, "checkpoint"), num) if first is None
                else Model(first.c, first.w, num, first.token_map))
        model = self.models[arithmetic]
        model.taps = {}
        return model

    def write(self, name, kind, tensors, **entry):
        write_safetensors(os.path.join(self.path, name + ".safetensors"), tensors)
        self.cases[name] = dict(file=name + ".safetensors", kind=kind, **entry)

    def finish(self, reference="tests/oracle, NumPy"):
        with open(os.path.join(self.path, "index.json"), "w", encoding="utf-8") as f:
            json.dump(dict(reference=reference, cases=self.cases), f)

    def prefill(self, name, ids, arithmetics=ALL):
        """Logits of every position."""
        tensors = {"ids": _int32(ids)}
        for arithmetic in arithmetics:
            model = self.model(arithmetic)
            logits, _ = model.forward(ids, WholeContext(model.c))
            tensors["logits" + _suffix(arithmetic)] = ("F32", logits.astype(F32))
        self.write(name, "prefill", tensors, n=len(ids), ids=[int(i) for i in ids])

    def taps(self, name, ids, arithmetic, has_inner=True):
        """Every inner value, or without those that the official folders lack; a tensor without
        numbers is left out."""
        left_out = () if has_inner else _inner_taps("layers", self.config.num_hidden_layers)
        model = self.model(arithmetic)
        model.forward(ids, WholeContext(model.c))
        tensors = {"ids": _int32(ids)}
        tensors.update({tap: stored(tap, value) for tap, value in model.taps.items()
                        if tap != "logits" and value.size and not tap.endswith(left_out)})
        entry = {} if arithmetic == BASE else {"arithmetic": arithmetic}
        self.write(name, "taps", tensors, n=len(ids), ids=[int(i) for i in ids], **entry)

    def clamped(self, name, ids, limit):
        """A prefill under another swiglu_limit, with the taps around the experts."""
        given = self.config.swiglu_limit
        tensors = {"ids": _int32(ids)}
        for arithmetic in (BASE, "unrounded_p"):
            model = self.model(arithmetic)
            model.c["swiglu_limit"] = limit
            logits, _ = model.forward(ids, WholeContext(model.c))
            tensors["logits" + _suffix(arithmetic)] = ("F32", logits.astype(F32))
            if arithmetic == BASE:
                tensors.update(self.layer_taps(model, ("router.ids", "router.weights", "ffn_norm",
                                                       "ffn_out")))
        self.config["swiglu_limit"] = given
        self.write(name, "prefill", tensors, n=len(ids), ids=[int(i) for i in ids],
                   config_override={"swiglu_limit": limit})

    def layer_taps(self, model, names):
        return {f"layers.{l}.{name}": stored(name, model.taps[f"layers.{l}.{name}"])
                for l in range(model.c.num_hidden_layers) for name in names
                if f"layers.{l}.{name}" in model.taps}

    def decode(self, name, ids, prefill):
        """`prefill` ids at once, the others one by one."""
        tensors = {"ids": _int32(ids)}
        for arithmetic in ALL:
            model = self.model(arithmetic)
            state = SequenceState(model.c)
            rows, steps = [model.forward(ids[:prefill], state)[0][-1]], []
            for p in range(prefill, len(ids)):
                model.taps = {}
                rows.append(model.forward(ids[p:p + 1], state)[0][0])
                steps.append(model.taps)
            tensors["logits" + _suffix(arithmetic)] = ("F32", np.array(rows).astype(F32))
            if arithmetic == BASE:
                tensors.update(self.step_taps(steps, DECODE_TAPS))
                tensors.update(self.cached(state))
        self.write(name, "decode", tensors, prefill=prefill, steps=len(ids) - prefill,
                   ids=[int(i) for i in ids])

    def step_taps(self, steps, names):
        """Taps of single steps, one row a step."""
        names = [tap for tap in (steps[0] if steps else ())
                 if tap == "final_h" or tap.split(".", 2)[-1] in names]
        return {tap: stored(tap, np.concatenate([taps[tap] for taps in steps])) for tap in names}

    def cached(self, state):
        """What a sequence leaves in the caches; ring slots by position mod W."""
        out = {("window_ring", l): self.ring(state, l)
               for l in range(self.config.num_hidden_layers)}
        for l in self.config.kv_source_layer_ids:
            out["compressed_kv", l], out["index_k", l] = state.rows[l], state.keys[l]
            for i, part in enumerate(("pending_k", "pending_g")):
                out[part, l] = state.pending[l][:, i] if l in state.pending else np.zeros(0)
        names = {f"state.layers.{l}.{part}": value for (part, l), value in out.items()}
        return {name: ("F32", value.astype(F32)) if "pending" in name else stored(name, value)
                for name, value in names.items() if value.size}

    def ring(self, state, owner):
        """The window rows of a layer or stage by position mod W."""
        window = self.config.sliding_window
        ring = np.zeros((window, self.config.head_dim), F32)
        for p in range(max(0, state.n - window), state.n):
            ring[p % window] = state.rings[owner][p % state.slots]
        return ring

    def dspark(self, name, ids, prefill, positions):
        """`prefill` ids at once, then single steps; a draft pass behind each of the positions."""
        tensors, passes = {"ids": _int32(ids)}, {}
        for arithmetic in ALL:
            model = self.model(arithmetic)
            state = SequenceState(model.c)
            _, main = model.forward(ids[:prefill], state)
            model.seed_drafts(main, 0, state)
            if arithmetic == BASE:
                tensors["prefill_main_hidden"] = stored("main_hidden", main)
            for p in range(prefill, positions[-1] + 1):
                logits, main = model.forward(ids[p:p + 1], state)
                model.taps = {"draft.main_hidden": main}
                model.seed_drafts(main, p, state)
                if p in positions:
                    passes.setdefault(p, {"position": p, "y": int(np.argmax(logits[0]))})
                    model.draft(passes[p]["y"], p, state)
                    tensors.update(self.draft_pass(model, state, p, arithmetic, passes[p]))
                    if arithmetic == BASE:
                        tensors[f"p{p}.target_logits"] = ("F32", logits[0].astype(F32))
        self.write(name, "dspark", tensors, prefill=prefill, ids=[int(i) for i in ids],
                   passes=list(passes.values()))

    def draft_pass(self, model, state, p, arithmetic, entry):
        """Tensors of one pass; its entry in the index is filled in."""
        taps = model.taps
        if arithmetic != BASE:
            return {f"p{p}.{tap}_{arithmetic}": stored(tap, taps[tap])
                    for tap in ("draft.logits", "draft.ids", "draft.confidence")}
        ranked = np.sort(taps["draft.logits"])
        entry.update(draft_ids=taps["draft.ids"].tolist(),
                     confidence=[round(float(c), 6) for c in taps["draft.confidence"]],
                     margin=[round(float(row[-1] - row[-2]), 4) for row in ranked])
        stages = self.config.num_nextn_predict_layers
        inner = _inner_taps("mtp", stages)
        out = {f"p{p}.{tap}": stored(tap, value) for tap, value in taps.items()
               if not tap.endswith(inner)}
        out.update({f"p{p}.mtp.{i}.window_ring": stored("window_ring",
                                                        self.ring(state, ("mtp", i)))
                    for i in range(stages)})
        return out

    def greedy(self, name, prompt, count):
        """The official arithmetic's tokens, as long as every arithmetic chooses the same."""
        ids, tokens, margins, logits = list(prompt), [], [], []
        states = {arithmetic: SequenceState(self.config) for arithmetic in ALL}
        step = ids
        while len(tokens) < count:
            rows = {a: self.model(a).forward(step, states[a])[0][-1] for a in ALL}
            best = {int(np.argmax(row)) for row in rows.values()}
            if len(best) > 1:
                break
            second, first = np.sort(rows[BASE])[-2:]
            step = [best.pop()]
            tokens += step
            margins.append(round(float(first - second), 4))
            logits.append(rows[BASE])
        if tokens:
            tensors = {"logits": ("F32", np.array(logits).astype(F32)), "prompt": _int32(prompt),
                       "tokens": _int32(tokens)}
            self.write(name, "greedy", tensors, prompt=[int(i) for i in prompt], tokens=tokens,
                       margin=margins)

    def picture(self, name, ids, images, decode_ids):
        """ids: with one placeholder a picture; images: uint8 [H, W, 3]."""
        tensors = {}
        for arithmetic in ALL:
            model = self.model(arithmetic)
            rows, grids, stages = self.encode_pictures(model, images)
            expanded, kinds = place_pictures(ids, grids, self.config.image_token_id)
            tensors.update(stages if arithmetic == BASE else {})
            tensors.update(self.picture_prompt(model, arithmetic, expanded, kinds, rows,
                                               decode_ids))
        tensors.update(ids=_int32(expanded), types=_int32(kinds), decode_ids=_int32(decode_ids))
        starts = np.nonzero(kinds == START)[0]
        pictures = [self.save_picture(f"{name}-{i}.png", image, int(starts[i]))
                    for i, image in enumerate(images)]
        self.write(name, "picture", tensors, pictures=pictures, n=len(expanded),
                   ids=expanded.tolist(), types=kinds.tolist(),
                   decode_ids=[int(i) for i in decode_ids])

    def encode_pictures(self, model, images):
        """(rows of all pictures, token grid of each, tensors of the stages of the tower)."""
        rows, grids, stages = [], [], {}
        for i, image in enumerate(images):
            model.taps = {}
            embedding, *grid = model.encode_picture(image)
            rows.append(embedding)
            grids.append(grid)
            stages.update({f"picture{i}.{part}": stored(part, model.taps[tap])
                           for tap, part in PICTURE_STAGES.items()})
            stages[f"picture{i}.types"] = _int32(span_kinds(*grid))
        return np.concatenate(rows), grids, stages

    def picture_prompt(self, model, arithmetic, ids, kinds, rows, decode_ids):
        """The prompt, then single steps."""
        state, model.taps = SequenceState(model.c), {}
        suffix = _suffix(arithmetic)
        logits, _ = model.forward(ids, state, kinds, rows)
        out = {"logits" + suffix: ("F32", logits.astype(F32))}
        if arithmetic == BASE:
            out.update(self.layer_taps(model, PICTURE_TAPS))
            out["final_h"] = stored("final_h", model.taps["final_h"])
        steps, tail = [], []
        for token in decode_ids:
            model.taps = {}
            tail.append(model.forward([token], state)[0][0])
            steps.append(model.taps)
        out["decode_logits" + suffix] = ("F32", np.array(tail).astype(F32))
        if arithmetic == BASE:
            out.update({"decode." + tap: value for tap, value in
                        self.step_taps(steps, ("engram.rows",)).items() if tap != "final_h"})
        return out

    def save_picture(self, file, image, start):
        """Writes the PNG; returns the picture's entry in the index."""
        from PIL import Image  # nothing else here needs Pillow
        Image.fromarray(image).save(os.path.join(self.path, file))
        vision, (height, width) = self.config.vision, image.shape[:2]
        box_w, box_h, rows, columns = resize_plan(width, height, vision)
        return dict(file=file, width=width, height=height, start=start,
                    patch_grid_w=box_w // vision.patch_size,
                    patch_grid_h=box_h // vision.patch_size, token_grid_w=columns,
                    token_grid_h=rows, span=span_length(rows, columns))

    def quantisers(self, name, x):
        """x [n, K] of bf16 numbers, K a multiple of 32."""
        tensors = {"x": ("BF16", codecs.bf16_encode(x))}
        for quantiser in ("fq8_32", "fq4_32", "fq4_16"):
            q, scale = getattr(codecs, quantiser + "_parts")(x)
            q, scale = q.reshape(x.shape), scale.reshape(len(x), -1)
            is_fp8 = quantiser == "fq8_32"
            codes = codecs.e4m3_encode(q) if is_fp8 else codecs.fp4_pack(codecs.e2m1_encode(q))
            scales = (codecs.e4m3_encode(scale) if quantiser == "fq4_16"
                      else codecs.e8m0_encode(scale))
            values = getattr(codecs, quantiser)(x)
            tensors[quantiser] = ("BF16", codecs.bf16_encode(values))
            tensors[quantiser + ".codes"] = ("U8", codes)
            tensors[quantiser + ".scales"] = ("U8", scales)
        self.write(name, "quantisers", tensors)

    def gemm(self, name, products):
        """products: (dtype in a checkpoint, x [M, K], weight codes, scale bytes)."""
        tensors, counts = {}, {"fp8": 0, "fp4": 0}
        for dtype, x, weight, scale in products:
            kind = "fp8" if dtype == "F8_E4M3" else "fp4"
            at = f"{kind}.{counts[kind]}"
            counts[kind] += 1
            y = ARITHMETICS[BASE].qlinear(x, dequantise(dtype, weight, scale))
            tensors[at + ".x"] = ("BF16", codecs.bf16_encode(x))
            tensors[at + ".weight"], tensors[at + ".scale"] = ("U8", weight), ("U8", scale)
            tensors[at + ".y"] = ("BF16", codecs.bf16_encode(y))
        self.write(name, "gemm", tensors)
