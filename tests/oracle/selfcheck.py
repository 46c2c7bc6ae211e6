"""Checks the oracle itself: the vectors that the specification prints, then that whole prefix,
chunks and rollback agree on a synthetic model. Raises AssertionError at the first failure.

    PYTHONPATH=tests python3 -m oracle.selfcheck         about 8 s
"""
import tempfile

import numpy as np

from oracle import codecs, engram, pictures, synthetic
from oracle.blocks import mix_coefficients
from oracle.config import Config
from oracle.model import load
from oracle.numerics import ARITHMETICS, Numerics, rope, rope_frequencies
from oracle.state import SequenceState, WholeContext

LAYER1 = [[16000057, 16000079, 16000081, 16000097, 16000121, 16000129, 16000133, 16000183],
          [16000189, 16000207, 16000211, 16000253, 16000277, 16000289, 16000307, 16000321],
          [16000339, 16000381, 16000393, 16000399, 16000403, 16000409, 16000447, 16000463]]
LAYER14 = [[16000477, 16000487, 16000499, 16000507, 16000511, 16000573, 16000609, 16000627],
           [16000667, 16000669, 16000693, 16000697, 16000711, 16000729, 16000759, 16000769],
           [16000781, 16000799, 16000813, 16000819, 16000841, 16000877, 16000879, 16000889]]
# Original size -> (box, token grid rows and columns, span), section 6.1.
PLANS = {(1554, 1078): (1554, 1078, 26, 37, 990), (1344, 1344): (1302, 1302, 31, 31, 994),
         (1920, 1080): (1708, 966, 23, 41, 968), (3840, 2160): (1708, 966, 23, 41, 968),
         (4000, 3000): (1512, 1134, 27, 36, 1001), (1000, 1000): (1008, 1008, 24, 24, 602),
         (640, 480): (644, 490, 12, 16, 206), (224, 224): (546, 546, 13, 13, 184),
         (1, 1): (546, 546, 13, 13, 184), (2000, 100): (2436, 126, 3, 58, 179)}
# Checksums of what Pillow 12.2 makes of one picture of 37x23.
BICUBIC = {(84, 42): 6866615451, (14, 9): 8841123, (37, 60): 2718730997, (100, 23): 2918431601,
           (1, 1): 753}


def check_codecs():
    """Sections 3.8 and 9.2."""
    finite = [code for code in range(256) if code & 127 != 127]
    assert (codecs.e4m3_encode(codecs.E4M3[finite]) == finite).all()
    assert np.isnan(codecs.E4M3[[127, 255]]).all()
    assert (codecs.e2m1_encode(codecs.E2M1) == np.arange(16)).all(), "-0 is code 8"
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, -0.25, -5])
    to_even = [0, 1, 1, 2, 2, 4, 4, 6, -0.0, -4]
    assert list(codecs.E2M1[codecs.e2m1_encode(ties)]) == to_even
    odd = np.array([464., 1e9, 2.0 ** -10, 3 * 2.0 ** -10, 17, 19, -2.0 ** -11])
    wanted = [448, 448, 0, 2.0 ** -8, 16, 20, 0]
    assert list(codecs.E4M3[codecs.e4m3_encode(odd)]) == wanted, "ties, saturation, subnormals"
    assert codecs.E8M0[127] == 1 and codecs.E8M0[0] == 2.0 ** -127 and np.isnan(codecs.E8M0[255])
    x = np.array([1, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, -1 - 2.0 ** -8 - 2.0 ** -20], np.float32)
    assert list(codecs.bf16(x)) == [1, 1, 1 + 2.0 ** -6, -1 - 2.0 ** -7], "nearest even"
    packed = np.array([[0x21, 0xF8]], np.uint8)
    assert (codecs.fp4_unpack(packed) == [[1, 2, 8, 15]]).all(), "the low nibble comes first"
    assert (codecs.fp4_pack(codecs.fp4_unpack(packed)) == packed).all()


def check_quantisers():
    """The hand vectors of section 3.8."""
    def vector(n, *first):
        return np.array(list(first) + [0] * (n - len(first)), np.float32)
    for amax, scale in ((448, 1), (449, 2), (300, 1), (3, 2.0 ** -7), (0, 2.0 ** -22)):
        assert codecs.fq8_32_parts(vector(32, amax))[1].item() == scale
    q, scale = codecs.fq8_32_parts(vector(32, 3, 0.01, -1, 0.3))
    assert scale.item() == 2.0 ** -7 and list(q[0, :4]) == [384, 1.25, -128, 40]
    q, scale = codecs.fq4_16_parts(vector(16, 7, 1, -3.5))
    assert scale.item() == 1.125 and list(q[0, :3]) == [6, 1, -3]
    assert list(codecs.fq4_16(vector(16, 7, 1, -3.5))[:3]) == [6.75, 1.125, -3.375]
    q, scale = codecs.fq4_32_parts(vector(32, 7, 1, -3.5))
    assert scale.item() == 2 and list(q[0, :3]) == [4, 0.5, -2]
    assert codecs.fq4_16_parts(vector(16))[1].item() == 2.0 ** -9
    assert codecs.fq4_32_parts(vector(32))[1].item() == 2.0 ** -126
    x = codecs.bf16(np.random.default_rng(0).normal(0, 1, (64, 64)).astype(np.float32))
    for quantise in (codecs.fq8_32, codecs.fq4_32, codecs.fq4_16):
        y = quantise(x)
        assert (codecs.bf16(y) == y).all(), "q·s is exact in bf16"


def check_rope():
    """Section 3.3."""
    yarn = dict(factor=16, beta_fast=32, beta_slow=1, original_max_position_embeddings=65536)
    f = rope_frequencies(64, 160000, yarn)
    wanted = {0: 1, 1: 0.687656045, 15: 0.00363553851, 16: 0.00226562493, 20: 2.96977785e-4,
              25: 5.37231244e-6, 31: 5.6805294e-7}
    assert all(f[i] == np.float32(value) for i, value in wanted.items())
    plain = rope_frequencies(64, 10000)
    assert plain[1] == np.float32(0.749894202) and plain[31] == np.float32(1.3335215e-4)
    num = Numerics("f64")
    x = np.random.default_rng(1).normal(size=(6, 2, 128))
    pos = [0, 1, 127, 128, 65535, 10 ** 6]
    y = rope(num, x, pos, f)
    assert np.allclose(rope(num, y, pos, f, inverse=True), x, rtol=1e-9, atol=0)
    assert (y[..., :64] == x[..., :64]).all()
    t = np.float64(np.float32(10 ** 6) * f[1])  # a product in f32, adjacent pairs
    a, b = x[5, 0, 66:68]
    turned = [a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)]
    assert np.allclose(y[5, 0, 66:68], turned, rtol=1e-12, atol=0)


def check_mixes():
    """Section 2.4."""
    m = np.sin(np.arange(24)).astype(np.float32)[None]
    pre, post, comb = mix_coefficients(Numerics("reference"), m, np.zeros(24, np.float32),
                                       np.ones(3, np.float32), 4, 20, np.float32(1e-6))
    assert np.abs(pre[0] - [0.500001, 0.698776, 0.712857, 0.535223]).max() < 1e-6
    assert np.abs(post[0] - [0.638682, 0.554187, 0.861194, 1.317166]).max() < 1e-6
    rows = [[0.434308, 0.310473, 0.155308, 0.099911], [0.057286, 0.189876, 0.437142, 0.315694]]
    assert np.abs(comb[0, :2] - rows).max() < 1e-6


def check_hashing():
    """Sections 5.1 to 5.3."""
    c = Config({"text_config": {"engram_layer_ids": [1, 14]}})
    primes = engram.bucket_primes(c)
    assert primes == {1: LAYER1, 14: LAYER14}
    assert engram.table_rows(c) == [384006168, 384016682]
    mult = {l: engram.multipliers(l, c) for l in (1, 14)}
    assert list(mult[1]) == [76632096046245, 4839876093313, 35959672319349, 73987337458391]
    assert list(mult[14]) == [67716810739261, 51510806800915, 30921347202721, 82619226485591]
    ids = [11, 22, 33, 44, engram.DEAD, 55]
    a, b = (engram.hash_rows(ids, 7, primes[l], mult[l]) for l in (1, 14))
    assert list(a[0, [0, 1, 2, 23]]) == [3507628, 26094887, 36875744, 379812459]
    assert list(a[3, [0, 8, 16, 23]]) == [3057966, 140321507, 264034123, 377270028]
    assert list(b[3, [0, 8, 16, 23]]) == [8916476, 133602641, 260712270, 373295295]
    assert a[4, 0] == 12468576 and b[5, 0] == 633816
    tiny = engram.bucket_primes(Config(synthetic.tiny_a()))
    assert tiny == {1: [[101, 103], [107, 109], [113, 127]],
                    3: [[131, 137], [139, 149], [151, 157]]}
    form = engram.normal_form
    assert form(" The", "") == form("the", "") == form("THE", "") == "the"
    assert form("\n", "") == form(" ", "") == " "
    assert form("É\u0301\u00a0 x", "") == "e x" and form("\u0301", "") == "\u0301"
    assert form("\ufffd", "stored") == "stored"


def check_synthetic():
    """Section 12.3."""
    assert synthetic.fnv1a64("embed.weight") == 0x9AC37BCAC2DC8A00
    drawn = (synthetic.uniform("embed.weight", 3) + 1) * 2 ** 23
    assert list(drawn) == [0x847C30, 0x05C017, 0x115305]


def check_pictures():
    """Sections 6.1 and 6.2."""
    v = Config({"vision_config": {}}).vision
    for size, wanted in PLANS.items():
        box_w, box_h, rows, columns = pictures.resize_plan(*size, v)
        span = pictures.span_length(rows, columns)
        assert (box_w, box_h, rows, columns, span) == wanted, size
    y, x, c = np.meshgrid(np.arange(23), np.arange(37), np.arange(3), indexing="ij")
    image = ((y * 37 + x * 101 + c * 53 + y * x * 7) % 256).astype(np.uint8)
    for (w, h), wanted in BICUBIC.items():
        flat = pictures.resize_bicubic(image, w, h).astype(np.int64).ravel()
        assert int((flat * (np.arange(w * h * 3) % 65521 + 1)).sum()) == wanted, (w, h)


def check_vectors():
    for check in (check_codecs, check_quantisers, check_rope, check_mixes, check_hashing,
                  check_synthetic, check_pictures):
        check()


def is_same(a, b, arithmetic):
    """Every bit where sums are rounded to f32; f64 sums depend on the library's order."""
    return (a == b).all() if arithmetic == "unrounded_p" else np.abs(a - b).max() < 1e-9


def check_chunks(model, arithmetic):
    """Whole prefix = chunks = single tokens = after a rollback."""
    ids = np.random.default_rng(5).integers(3, 499, 97)
    full, main = model.forward(ids, WholeContext(model.c))
    assert np.isfinite(full).all()
    for cuts in ([0, 33, 34, 97], [0, 1, 2, 3, 16, 17, 40, 97], list(range(98))):
        state = SequenceState(model.c)
        chunks = [model.forward(ids[a:b], state) for a, b in zip(cuts, cuts[1:])]
        assert is_same(np.concatenate([chunk[0] for chunk in chunks]), full, arithmetic)
        assert is_same(np.concatenate([chunk[1] for chunk in chunks]), main, arithmetic)
    state = SequenceState(model.c)
    model.forward(ids[:71], state)
    for kept in (0, 1, 3, 5):  # of six drafted tokens
        p = state.n
        drafted = np.concatenate([ids[p:p + kept], (ids[p + kept:p + 6] + 11) % 500])
        model.forward(drafted, state)
        state.rollback(p + kept)
        logits, _ = model.forward(ids[state.n:state.n + 1], state)
        assert is_same(logits[0], full[state.n - 1], arithmetic), kept


def check_drafts(model, arithmetic):
    """The drafts of a whole prefix = those of a sequence in chunks."""
    ids = np.random.default_rng(6).integers(3, 499, 60)
    context, state = WholeContext(model.c), SequenceState(model.c)
    model.seed_drafts(model.forward(ids, context)[1], 0, context)
    for a, b in ((0, 40), (40, 59), (59, 60)):
        model.seed_drafts(model.forward(ids[a:b], state)[1], a, state)
    want, got = model.draft(7, 59, context), model.draft(7, 59, state)
    assert got[0] == want[0] and is_same(got[1], want[1], arithmetic)


def check_trimming(model):
    """3.11: decoder rows that the last position cannot see are overwritten after every block."""
    c, block = model.c, model.block
    ids = np.random.default_rng(8).integers(3, 499, 97)
    full, _ = model.forward(ids, WholeContext(c))

    def poisoned(name, *rest):
        streams, pre = block(name, *rest)
        layer = int(name.split(".")[1])
        if layer >= c.kv_source_layer_ids[-1]:
            later = c.num_hidden_layers - 1 - layer
            dead = max(0, len(ids) - 1 - (c.sliding_window - 1) * later)
            streams[:dead], pre[:dead] = 1e3, 0.5
        return streams, pre
    model.block = poisoned
    got, _ = model.forward(ids, WholeContext(c))
    model.block = block
    assert (got[-1] == full[-1]).all() and (got[0] != full[0]).any()


def check_picture_prompt(model):
    image = np.random.default_rng(6).integers(0, 256, (100, 130, 3)).astype(np.uint8)
    rows, *grid = model.encode_picture(image)
    ids, kinds = pictures.place_pictures([5, 9, 500, 11, 12], [grid], 500)
    full, _ = model.forward(ids, WholeContext(model.c), kinds, rows)
    state, got, used = SequenceState(model.c), [], 0
    for a in range(0, len(ids), 7):  # cuts inside the span
        part = kinds[a:a + 7]
        count = int((part == pictures.IMAGE).sum())
        got.append(model.forward(ids[a:a + 7], state, part, rows[used:used + count])[0])
        used += count
    assert (np.concatenate(got) == full).all()


def main():
    check_vectors()
    with tempfile.TemporaryDirectory() as folder:
        synthetic.write_checkpoint(synthetic.tiny_a(), folder)
        for arithmetic in ("unrounded_p", "f32"):
            model = load(folder, ARITHMETICS[arithmetic])
            check_chunks(model, arithmetic)
            check_drafts(model, arithmetic)
        model = load(folder, ARITHMETICS["unrounded_p"])
        check_trimming(model)
        check_picture_prompt(model)
    print("self-check passed")


if __name__ == "__main__":
    main()
