"""Pictures before the tower (spec sections 6.1, 6.2, 6.4): resize plan, Pillow-exact bicubic,
patches, and the span that stands for a picture in a prompt."""
import math

import numpy as np

from oracle.codecs import F32, bf16

TEXT, START, IMAGE, NEWLINE, END = -1, 0, 1, 2, 3  # kinds of positions


def span_length(rows, columns):
    return rows * (columns + 1) + 2


def resize_plan(width, height, v):
    """6.1: (box width, box height, token grid rows, token grid columns)."""
    patch, ratio, most = v.patch_size, v.downsample_ratio, v.max_image_tokens
    cell, w, h = patch * ratio, width, height

    def grid(box_h, box_w):
        return -(-(box_h // patch) // ratio), -(-(box_w // patch) // ratio)
    if v.max_wh_ratio is not None and w > h * v.max_wh_ratio:
        w = h * v.max_wh_ratio
    if 0 < w * h < v.min_pixels:
        q = math.sqrt(v.min_pixels / (w * h))
        w, h = int(w * q), int(h * q)
    box_w, box_h = math.ceil(w / patch) * patch, math.ceil(h / patch) * patch
    if span_length(*grid(box_h, box_w)) > most:
        aspect = h / w
        columns = math.sqrt((most - 2) / aspect + 0.25) - 0.5
        if columns < 1:
            box_h, box_w = (most - 2) // 2 * cell, cell
        elif columns * aspect < 1:
            box_h, box_w = cell, (most - 3) * cell
        else:
            beta = min(math.floor(columns) * cell / w, math.floor(columns * aspect) * cell / h)
            box_h = math.floor(h * beta / patch) * patch
            box_w = math.floor(w * beta / patch) * patch
        if span_length(*grid(box_h, box_w)) > most or not box_h * box_w:
            raise ValueError(f"a picture of {width}x{height} does not fit {most} tokens")
    return box_w, box_h, *grid(box_h, box_w)


def _bicubic(x):
    x = abs(x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2 else 0.0


def _resample(image, size):
    """One pass along axis 1 of uint8 [rows, n, channels]."""
    n = image.shape[1]
    scale = n / size
    stretch = max(1.0, scale)
    support = 2.0 * stretch
    out = np.empty((image.shape[0], size, image.shape[2]), np.uint8)
    for i in range(size):
        centre = (i + 0.5) * scale
        low, high = max(0, int(centre - support + 0.5)), min(n, int(centre + support + 0.5))
        weights = [_bicubic((j - centre + 0.5) * (1.0 / stretch)) for j in range(low, high)]
        total = sum(weights)
        fixed = [int(math.copysign(0.5, k) + k / total * (1 << 22)) for k in weights]
        acc = np.tensordot(image[:, low:high].astype(np.int64), np.array(fixed, np.int64), (1, 0))
        out[:, i] = np.clip((acc + (1 << 21)) >> 22, 0, 255)
    return out


def resize_bicubic(image, width, height):
    """6.2: uint8 [H, W, 3], the horizontal pass first."""
    if image.shape[1] != width:
        image = _resample(image, width)
    if image.shape[0] != height:
        image = _resample(image.transpose(1, 0, 2), height).transpose(1, 0, 2)
    return np.ascontiguousarray(image)


def _fitted(image, box_w, box_h):
    """6.2: the picture in the middle of a grey box, its aspect ratio kept."""
    height, width = image.shape[:2]
    w, h = box_w, box_h
    if width / height > box_w / box_h:
        h = round(height / width * box_w)
    elif width / height < box_w / box_h:
        w = round(width / height * box_h)
    if not w * h:
        raise ValueError(f"nothing of a picture of {width}x{height} is left in {box_w}x{box_h}")
    canvas = np.full((box_h, box_w, 3), 127, np.uint8)
    x, y = round((box_w - w) * 0.5), round((box_h - h) * 0.5)
    canvas[y:y + h, x:x + w] = resize_bicubic(image, w, h)
    return canvas


def picture_patches(image, v):
    """uint8 [H, W, 3] -> (patches [N, 3·P·P], rows and columns of the patch grid, of the token
    grid)."""
    height, width = image.shape[:2]
    box_w, box_h, rows, columns = resize_plan(width, height, v)
    if v.max_wh_ratio is not None and width >= v.max_wh_ratio * height:
        canvas = resize_bicubic(image, box_w, box_h)
    else:
        canvas = _fitted(image, box_w, box_h)
    f = canvas.astype(F32) / F32(255)
    f = bf16((f - F32(0.5)) / F32(0.5))
    patch = v.patch_size
    grid_h, grid_w = box_h // patch, box_w // patch
    f = f.reshape(grid_h, patch, grid_w, patch, 3).transpose(0, 2, 4, 1, 3)
    return f.reshape(-1, 3 * patch * patch), grid_h, grid_w, rows, columns


def span_kinds(rows, columns):
    return [START] + ([IMAGE] * columns + [NEWLINE]) * rows + [END]


def place_pictures(ids, grids, image_token):
    """6.4: replaces each placeholder by its span -> (ids [n], kinds [n])."""
    out, kinds, grids = [], [], list(grids)
    for token in ids:
        span = span_kinds(*grids.pop(0)) if token == image_token else [TEXT]
        out += [token] * len(span)
        kinds += span
    assert not grids, "more pictures than placeholders"
    return np.array(out, np.int64), np.array(kinds, np.int64)
