"""Random pictures of coloured shapes: scenes, drawing, the resize plan and patches.

Needs NumPy and Pillow only. A scene is a list of shapes in reading order (3x3 cells, row by row)
plus the drawing options; `render` draws it at its own size, `fit` applies the model's official
resize.
"""

import io
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

KINDS = ["circle", "square", "triangle", "star", "rectangle", "ellipse"]
COLOURS = {
    "red": [(255, 0, 0), (255, 0, 0), (220, 30, 30), (200, 20, 40), (178, 34, 34), (240, 60, 60)],
    "green": [
        (0, 128, 0),
        (0, 200, 0),
        (40, 160, 60),
        (0, 255, 0),
        (34, 139, 34),
        (50, 205, 50),
        (0, 100, 0),
    ],
    "blue": [
        (0, 0, 255),
        (0, 0, 255),
        (30, 60, 220),
        (40, 90, 230),
        (20, 40, 180),
        (0, 0, 139),
        (30, 144, 255),
        (65, 105, 225),
    ],
    "yellow": [(255, 255, 0), (255, 255, 0), (250, 220, 30), (240, 230, 60), (255, 215, 0)],
    "orange": [(255, 165, 0), (255, 165, 0), (255, 140, 0), (245, 130, 30), (255, 120, 0)],
    "purple": [
        (128, 0, 128),
        (128, 0, 128),
        (140, 50, 180),
        (110, 40, 160),
        (160, 32, 240),
        (150, 60, 200),
    ],
    "black": [(0, 0, 0), (25, 25, 25), (15, 10, 20)],
    "white": [(255, 255, 255), (245, 245, 245), (250, 250, 240)],
}
NAMES = list(COLOURS)
PLACES = [
    "upper left",
    "top",
    "upper right",
    "left",
    "centre",
    "right",
    "lower left",
    "bottom",
    "lower right",
]
LIGHT = [(255, 255, 255)] * 8 + [
    (240, 240, 240),
    (225, 225, 230),
    (250, 245, 230),
    (230, 240, 250),
    (235, 250, 235),
    (200, 200, 200),
    (245, 245, 220),
]
DARK = [
    (60, 60, 60),
    (90, 90, 90),
    (40, 70, 110),
    (50, 90, 60),
    (110, 80, 70),
    (130, 130, 140),
    (20, 25, 40),
    (128, 128, 128),
    (160, 160, 165),
    (90, 120, 150),
]
PATCH, CELL = 14, 42  # pixels of a patch and of an image token (3x3 patches)
LIMIT, MIN_PIXELS = 48, 28224


def plan(w, h, limit=LIMIT, min_pixels=MIN_PIXELS):
    """Official resize plan (model specification 6.1): size of the box in pixels for a w x h
    picture.
    """
    if 0 < w * h < min_pixels:
        q = (min_pixels / (w * h)) ** 0.5
        w, h = int(w * q), int(h * q)
    bw, bh = -(-w // PATCH) * PATCH, -(-h // PATCH) * PATCH
    gh, gw = -(-(bh // PATCH) // 3), -(-(bw // PATCH) // 3)
    if gh * (gw + 1) + 2 <= limit:
        return bw, bh
    a = h / w
    mw = ((limit - 2) / a + 0.25) ** 0.5 - 0.5
    mh = mw * a
    if mw < 1:
        return CELL, (limit - 2) // 2 * CELL
    if mh < 1:
        return (limit - 3) * CELL, CELL
    b = min(int(mw) * CELL / w, int(mh) * CELL / h)
    return int(w * b / PATCH) * PATCH, int(h * b / PATCH) * PATCH


def placed(w, h, limit=LIMIT):
    """Box size and the rectangle (x, y, width, height) that a w x h picture takes inside it."""
    bw, bh = plan(w, h, limit)
    if w / h > bw / bh:
        size = (bw, round(h / w * bw))
    elif w / h < bw / bh:
        size = (round(w / h * bh), bh)
    else:
        size = (bw, bh)
    return (bw, bh), (round((bw - size[0]) * 0.5), round((bh - size[1]) * 0.5), *size)


def fit(im, limit=LIMIT):
    """Official preprocessing: aspect-preserving bicubic resize into the box, grey padding."""
    im = im.convert("RGB")
    box, (x, y, w, h) = placed(*im.size, limit)
    if (w, h) != im.size:
        im = im.resize((w, h), Image.BICUBIC)
    if (w, h) == box:
        return im
    canvas = Image.new("RGB", box, (127, 127, 127))
    canvas.paste(im, (x, y))
    return canvas


def patches(im):
    """uint8 [rows*cols, 588] in (channel, y, x) order, and the numbers of rows and columns."""
    a = np.asarray(im)
    h, w = a.shape[0] // PATCH, a.shape[1] // PATCH
    return (
        np.ascontiguousarray(a.reshape(h, PATCH, w, PATCH, 3).transpose(0, 2, 4, 1, 3)).reshape(
            h * w, 588
        ),
        h,
        w,
    )


# ------------------------------------------------------------------------------------------------
# - scenes


def picture_size(rng, small):
    """Width and height in pixels of a random upload; `small` is the share of pictures of 16-20
    image tokens.
    """
    u = rng.random()
    if u < small:
        s = rng.choice([64, 96, 128, 168, 168, 168, 180, 196])
        return s, int(s * rng.uniform(0.85, 1.15))
    if u < small + 0.06:  # extreme shapes
        a = 2 ** rng.uniform(1.3, 2.6)
        w = int(2 ** rng.uniform(8, 10))
        return (w, max(64, int(w / a))) if rng.random() < 0.6 else (max(64, int(w / a)), w)
    w = int(2 ** rng.uniform(7.4, 10.8))
    return w, max(100, int(w * 2 ** rng.uniform(-1.0, 0.75)))


def contrast(a, b):
    return sum(abs(x - y) for x, y in zip(a, b))


def jitter(rng, rgb, amount):
    return tuple(max(0, min(255, v + rng.randint(-amount, amount))) for v in rgb)


def new_shape(rng, kind, cell, w, h, n):
    """One shape centred in 3x3 cell `cell` of a w x h picture: centre x, y and half sizes rx,
    ry in pixels.
    """
    cw, ch = w / 3, h / 3
    r = 0.5 * min(cw, ch) * rng.uniform(0.5, 1.0)
    if n <= 2 and rng.random() < 0.35:
        r *= rng.uniform(1.0, 1.9)
    elif rng.random() < 0.2:
        r = 0.5 * min(max(cw, ch), 1.6 * min(cw, ch)) * rng.uniform(0.5, 1.0)
    rx = ry = r
    if kind in ("rectangle", "ellipse"):
        ratio = rng.uniform(1.3, 2.5)
        long = r * rng.uniform(0.95, 1.3)
        rx, ry = (
            (long, long / ratio)
            if rng.random() < (0.75 if w >= h else 0.4)
            else (long / ratio, long)
        )
    elif kind == "triangle" and rng.random() < 0.4:
        ry = r * rng.uniform(0.8, 1.2)
    jx, jy = rng.uniform(-0.24, 0.24), rng.uniform(-0.24, 0.24)
    x, y = (cell % 3 + 0.5 + jx) * cw, (cell // 3 + 0.5 + jy) * ch
    x, y = min(max(x, rx + 1), w - rx - 1), min(max(y, ry + 1), h - ry - 1)
    return dict(kind=kind, cell=cell, x=x, y=y, rx=rx, ry=ry)


def apart(s, others, gap):
    return all(
        abs(s["x"] - o["x"]) > s["rx"] + o["rx"] + gap
        or abs(s["y"] - o["y"]) > s["ry"] + o["ry"] + gap
        for o in others
    )


def layout(rng, n, w, h):
    """n shapes in different 3x3 cells that do not touch, each centre inside its own cell; None
    when it fails.
    """
    shapes = []
    for cell in sorted(rng.sample(range(9), n)):
        kind = rng.choice(KINDS)
        for _ in range(8):
            s = new_shape(rng, kind, cell, w, h, n)
            inside = int(s["x"] * 3 / w) == cell % 3 and int(s["y"] * 3 / h) == cell // 3
            if inside and apart(s, shapes, 0.012 * max(w, h)):
                break
        else:
            return None
        shapes.append(s)
    return shapes


def colour_scene(rng, shapes):
    """Chooses shape colours and a background on which every shape can be seen; returns the
    background.
    """
    same = rng.choice(NAMES) if rng.random() < 0.15 else None
    for s in shapes:
        s["colour"] = same if same and rng.random() < 0.7 else rng.choice(NAMES)
        s["rgb"] = jitter(rng, rng.choice(COLOURS[s["colour"]]), 10)
        s["line"] = None
    lined = rng.random() < 0.25
    if lined:
        line = rng.choice(
            [(0, 0, 0), (0, 0, 0), (40, 40, 40), (90, 90, 90), (255, 255, 255), (30, 30, 80)]
        )
        for s in shapes:
            s["line"] = line
    dark = (
        rng.random() < 0.2
        or any(s["colour"] == "white" for s in shapes)
        and not (lined and sum(line) < 200 and rng.random() < 0.4)
    )
    pool = [
        c
        for c in (DARK if dark else LIGHT)
        if all(
            contrast(c, s["rgb"]) > 110 or (lined and sum(line) < 200 and s["colour"] == "white")
            for s in shapes
        )
    ]
    return rng.choice(pool) if pool else None


def scene(rng, n=None, size=None, small=0.25, styles=True, tries=1000):
    """Random scene: dict(w, h, back, shapes, style...) with the shapes in reading order of the
    3x3 cells.

    None when `tries` attempts found no layout (possible with many shapes at a fixed extreme
    size).
    """
    for _ in range(tries):
        k = n or rng.choice([1, 2, 2, 3, 3, 3, 4, 4])
        w, h = size or picture_size(rng, small)
        shapes = layout(rng, k, w, h)
        back = colour_scene(rng, shapes) if shapes else None
        if back is None:
            continue
        out = dict(w=w, h=h, back=back, shapes=shapes, style={})
        if anchors(out) is None:
            continue
        if styles:
            out["style"] = drawing_style(rng)
        for s in shapes:
            s["tilt"] = rng.uniform(-0.12, 0.12) if rng.random() < 0.4 else 0.0
            s["form"] = rng.random()
        return out
    return None


def drawing_style(rng):
    """Options that imitate other programs: antialiasing, line width, gradients, noise, blur
    and JPEG.
    """
    st = dict(
        aa=rng.choice([1, 1, 2, 2, 3]), line=rng.uniform(0.004, 0.012), seed=rng.randrange(1 << 30)
    )
    if rng.random() < 0.2:
        st["ramp"] = rng.uniform(0.05, 0.3)
    if rng.random() < 0.15:
        st["back_ramp"] = rng.uniform(0.03, 0.15)
    if rng.random() < 0.1:
        st["clouds"] = rng.uniform(5, 25)
    if rng.random() < 0.2:
        st["noise"] = rng.uniform(2, 14)
    if rng.random() < 0.1:
        st["blur"] = rng.uniform(0.3, 0.9)
    if rng.random() < 0.25:
        st["jpeg"] = rng.randint(55, 95)
    return st


def outline(s):
    """Corner points of a shape relative to its centre, in units of the half sizes; None for
    round shapes.
    """
    f = s.get("form", 0.5)
    if s["kind"] in ("circle", "ellipse"):
        return None
    if s["kind"] == "triangle":
        if f < 0.08:
            return [(-1, -1), (1, -1), (0, 1)]
        if f < 0.14:
            return [(-1, -1), (1, 1), (-1, 1)]
        return [(0, -1), (1, 0.78), (-1, 0.78)] if f < 0.6 else [(0, -1), (1, 1), (-1, 1)]
    if s["kind"] == "star":
        inner = 0.38 + 0.12 * f
        return [
            (
                math.sin(i * math.pi / 5) * (1 if i % 2 == 0 else inner),
                -math.cos(i * math.pi / 5) * (1 if i % 2 == 0 else inner),
            )
            for i in range(10)
        ]
    return [(-1, -1), (1, -1), (1, 1), (-1, 1)]


def corners(s, scale):
    """Corner points in pixels of the drawing; squares and rectangles tilt less than triangles
    and stars.
    """
    pts = outline(s)
    t = s.get("tilt", 0.0) * (0.3 if s["kind"] in ("square", "rectangle") else 1)
    c, n = math.cos(t), math.sin(t)
    fit_in = 0.94 if s["kind"] in ("square", "rectangle") else 1.0
    return [
        (
            (s["x"] + (x * s["rx"] * c - y * s["ry"] * n) * fit_in) * scale[0],
            (s["y"] + (x * s["rx"] * n + y * s["ry"] * c) * fit_in) * scale[1],
        )
        for x, y in pts
    ]


def ramp_fill(rng, im, mask, rgb, strength):
    """Fills `mask` with a linear brightness ramp around rgb, made small and enlarged."""
    a = rng.uniform(0, 2 * math.pi)
    t = np.linspace(-1, 1, 24, dtype=np.float32)
    g = 1 + (t[None] * math.cos(a) + t[:, None] * math.sin(a)) * strength
    small = np.clip(np.array(rgb, np.float32) * g[..., None], 0, 255).astype(np.uint8)
    im.paste(Image.fromarray(small).resize(im.size, Image.BILINEAR), (0, 0), mask)


def draw_shape(d, s, scale, fill, line, width):
    if s["kind"] in ("circle", "ellipse"):
        d.ellipse(
            (
                (s["x"] - s["rx"]) * scale[0],
                (s["y"] - s["ry"]) * scale[1],
                (s["x"] + s["rx"]) * scale[0],
                (s["y"] + s["ry"]) * scale[1],
            ),
            fill=fill,
            outline=line,
            width=width,
        )
        return
    pts = corners(s, scale)
    d.polygon(pts, fill=fill)
    if line is not None:
        d.line(pts + pts[:2], fill=line, width=width, joint="curve")


def render(sc, size=None):
    """Draws a scene at `size` pixels (default: its own size)."""
    import random

    st = sc["style"]
    w, h = size or (sc["w"], sc["h"])
    aa = st.get("aa", 1)
    rng = random.Random(st.get("seed", 0))
    scale = (w * aa / sc["w"], h * aa / sc["h"])
    im = Image.new("RGB", (w * aa, h * aa), sc["back"])
    if "back_ramp" in st:
        ramp_fill(rng, im, None, sc["back"], st["back_ramp"])
    d = ImageDraw.Draw(im)
    width = max(1, round(st.get("line", 0.008) * max(w, h) * aa))
    for s in sc["shapes"]:
        if "ramp" in st:
            mask = Image.new("L", im.size, 0)
            draw_shape(ImageDraw.Draw(mask), s, scale, 255, None, 1)
            ramp_fill(rng, im, mask, s["rgb"], st["ramp"])
            if s.get("line") is not None:
                draw_shape(d, s, scale, None, s["line"], width)
        else:
            draw_shape(d, s, scale, s["rgb"], s.get("line"), width)
    if aa > 1:
        im = im.reduce(aa)
    return degrade(im, st)


_grain = []


def grain(h, w, seed):
    """Standard normal noise [h, w, 3] float32: a random window of one stored field, drawn
    afresh for large pictures.
    """
    if not _grain:
        _grain.append(np.random.default_rng(5).standard_normal((640, 640, 3), dtype=np.float32))
    y, x = seed % 200, seed // 200 % 200
    if h > 440 or w > 440:
        return np.random.default_rng(seed).standard_normal((h, w, 3), dtype=np.float32)
    return _grain[0][y : y + h, x : x + w]


def degrade(im, st):
    """Blur, noise and JPEG of a drawing style."""
    if "clouds" in st:
        g = np.random.default_rng(st["seed"] + 1)
        soft = Image.fromarray(g.uniform(-1, 1, (5, 6)).astype(np.float32), "F").resize(
            im.size, Image.BICUBIC
        )
        im = Image.fromarray(
            np.clip(np.asarray(im) + np.asarray(soft)[..., None] * st["clouds"], 0, 255).astype(
                np.uint8
            )
        )
    if "blur" in st:
        im = im.filter(ImageFilter.GaussianBlur(st["blur"]))
    if "noise" in st:
        a = np.asarray(im)
        noise = grain(a.shape[0], a.shape[1], st["seed"]) * st["noise"]
        im = Image.fromarray(np.clip(a + noise, 0, 255).astype(np.uint8))
    if "jpeg" in st:
        b = io.BytesIO()
        im.save(b, "JPEG", quality=st["jpeg"])
        im = Image.open(io.BytesIO(b.getvalue()))
    return im


def fitted(rng, sc, direct=0.7):
    """The scene as the model sees it. Mostly drawn at the fitted size at once (fast), else
    drawn large and resized.
    """
    box, (x, y, w, h) = placed(sc["w"], sc["h"])
    area = sc["w"] * sc["h"]
    if area < MIN_PIXELS or (rng.random() >= direct and area < 800000):
        return fit(render(sc))
    im = render(sc, (w, h))
    if (w, h) == box:
        return im
    canvas = Image.new("RGB", box, (127, 127, 127))
    canvas.paste(im, (x, y))
    return canvas


# ------------------------------------------------------------------------------------------------
# - labels


def anchors(sc):
    """Image-token cell (row, column) that holds each shape's centre; None when two shapes
    share one.
    """
    box, (ox, oy, w, h) = placed(sc["w"], sc["h"])
    out = [
        (int((s["y"] / sc["h"] * h + oy) / CELL), int((s["x"] / sc["w"] * w + ox) / CELL))
        for s in sc["shapes"]
    ]
    return out if len(set(out)) == len(out) else None


def grid_labels(sc, unit, margin):
    """Shape index per grid cell of `unit` pixels (-1: none) and geometry [rows, cols, 4] =
    (dx, dy, rx, ry) / 42.
    """
    (bw, bh), (ox, oy, w, h) = placed(sc["w"], sc["h"])
    rows, cols = -(-bh // unit), -(-bw // unit)
    out, best = np.full((rows, cols), -1), np.full((rows, cols), 1e9)
    geo = np.zeros((rows, cols, 4), np.float32)
    ys, xs = (np.arange(rows)[:, None] + 0.5) * unit, (np.arange(cols)[None] + 0.5) * unit
    fx, fy = w / sc["w"], h / sc["h"]
    for i, s in enumerate(sc["shapes"]):
        x, y, rx, ry = s["x"] * fx + ox, s["y"] * fy + oy, s["rx"] * fx, s["ry"] * fy
        d = np.maximum(np.abs(xs - x) - rx, np.abs(ys - y) - ry)
        hit = (d < margin) & (d < best)
        out[hit], best[hit] = i, np.broadcast_to(d, out.shape)[hit]
        geo[hit] = np.stack(np.broadcast_arrays(x - xs, y - ys, rx, ry), -1)[hit] / CELL
    return out, geo


def cell_codes(sc):
    """Labels per image token [tokens, 4]: kind, colour, place (0 = none, else index + 1) and
    whether it is an anchor.
    """
    lab, _ = grid_labels(sc, CELL, 12)
    t = np.zeros((*lab.shape, 4), np.int64)
    for i, (s, (r, c)) in enumerate(zip(sc["shapes"], anchors(sc))):
        code = (1 + KINDS.index(s["kind"]), 1 + NAMES.index(s["colour"]), 1 + s["cell"])
        t[lab == i, :3] = code
        t[r, c] = (*code, 1)
    return t.reshape(-1, 4)


def soft_anchors(sc, rng=None, blur=3.0):
    """How strongly each image token holds a centre [tokens], 0-1: shared with neighbours near a
    cell's border.

    `blur` is the tower's uncertainty about a centre in pixels of the fitted picture; `rng` adds
    an error of that size.
    """
    (bw, bh), (ox, oy, w, h) = placed(sc["w"], sc["h"])
    rows, cols = -(-bh // CELL), -(-bw // CELL)
    out = np.zeros((rows, cols), np.float32)
    for s in sc["shapes"]:
        share = []
        for v, n in (
            ((s["y"] / sc["h"] * h + oy) / CELL, rows),
            ((s["x"] / sc["w"] * w + ox) / CELL, cols),
        ):
            v += rng.gauss(0, 0.5 * blur / CELL) if rng else 0
            i, f = int(v), v - int(v)
            j = i - 1 if f < 0.5 else i + 1
            p = 1 / (1 + math.exp(-min(f, 1 - f) * CELL / blur * 1.7))
            i = min(max(i, 0), n - 1)
            share.append([(i, p), (j, 1 - p)] if 0 <= j < n else [(i, 1.0)])
        for r, p in share[0]:
            for c, q in share[1]:
                out[r, c] = max(out[r, c], p * q)
    return out.reshape(-1)


def patch_codes(sc):
    """Labels per patch: kind and colour [patches, 2] (0 = none) and geometry [patches, 4]."""
    lab, geo = grid_labels(sc, PATCH, 4)
    t = np.zeros((*lab.shape, 2), np.int64)
    for i, s in enumerate(sc["shapes"]):
        t[lab == i] = (1 + KINDS.index(s["kind"]), 1 + NAMES.index(s["colour"]))
    return t.reshape(-1, 2), geo.reshape(-1, 4)
