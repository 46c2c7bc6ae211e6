"""Makes small pictures of tests/fuzz/corpus, and expected.json beside this file: size and SHA-256 of the
RGB bytes that Pillow 12.2.0 decodes, or for kinds of PNG that it does not write, of the pixels put in (the
high byte of 16-bit samples, blended on white). Run: python make_pictures.py

The other files of the corpus (transparent, CMYK and YCCK, cut, lying and moving ones) are small
hand-made cases; decode_test.cc says what is in them.
"""
import hashlib
import io
import json
import os
import struct
import zlib

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "..", "fuzz", "corpus")
JPEG = "jpeg/pillow_{}.jpg"


def picture(width, height, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin(x * rng.uniform(0.05, 0.4) + y * rng.uniform(0.05, 0.4) + c) for c in range(3)]
    return Image.fromarray(np.clip(np.stack(planes, -1) + rng.normal(0, 6, (height, width, 3)), 0, 255).astype(np.uint8))


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def raw_png(samples, interlaced):
    """PNG of [height, width, channels] uint8 or uint16, rows unfiltered."""
    height, width, channels = samples.shape

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    rows = b"".join(b"\0" + row.astype(samples.dtype.newbyteorder(">")).tobytes()
                    for x, y, dx, dy in passes for row in samples[y::dy, x::dx] if row.size)
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, samples.dtype.itemsize * 8, colour, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def on_white(samples):
    """What a decoder should give: high bytes, grey to RGB, blended on white with rounding."""
    pixels = (samples >> 8 if samples.dtype == np.uint16 else samples).astype(int)
    if pixels.shape[2] < 3:
        pixels = np.concatenate([pixels[..., :1]] * 3 + [pixels[..., 1:]], -1)
    if pixels.shape[2] == 4:
        alpha = pixels[..., 3:]
        pixels = (pixels[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255
    return pixels.astype(np.uint8)


def write_raw_pngs(expected):
    rng = np.random.default_rng(2)
    for channels, name in ((1, "grey"), (2, "grey_alpha"), (3, "rgb"), (4, "rgba")):
        for dtype in (np.uint8, np.uint16):
            for interlaced in (False, True):
                if dtype == np.uint8 and not interlaced:
                    continue
                samples = rng.integers(0, np.iinfo(dtype).max + 1, (9, 11, channels)).astype(dtype)
                path = f"png/raw_{name}{samples.dtype.itemsize * 8}{'_interlaced' if interlaced else ''}.png"
                with open(os.path.join(CORPUS, path), "wb") as file:
                    file.write(raw_png(samples, interlaced))
                expected[path] = {"width": 11, "height": 9, "sha256": hashlib.sha256(on_white(samples).tobytes()).hexdigest()}


def main():
    image = picture(23, 17, 1)
    files = {
        "png/pillow_rgb.png": (image, {}),
        "png/pillow_grey.png": (image.convert("L"), {}),
        "png/pillow_palette.png": (image.quantize(16), {}),
        "png/pillow_one_bit.png": (image.convert("1"), {}),
        JPEG.format("444"): (image, {"quality": 90, "subsampling": 0}),
        JPEG.format("420"): (image, {"quality": 70, "subsampling": 2}),
        JPEG.format("progressive"): (image, {"quality": 60, "progressive": True}),
        JPEG.format("grey"): (image.convert("L"), {"quality": 80}),
        JPEG.format("cmyk"): (image.convert("CMYK"), {"quality": 80}),
        "webp/pillow_lossy.webp": (image, {"quality": 80}),
        "webp/pillow_lossless.webp": (image, {"lossless": True}),
        "gif/pillow.gif": (image.quantize(32), {}),
    }
    expected = {}
    for name, (source, options) in files.items():
        out = io.BytesIO()
        source.save(out, {"jpg": "JPEG"}.get(name.split(".")[-1], name.split(".")[-1].upper()), **options)
        with open(os.path.join(CORPUS, name), "wb") as file:
            file.write(out.getvalue())
        decoded = Image.open(io.BytesIO(out.getvalue())).convert("RGB")
        expected[name] = {"width": decoded.width, "height": decoded.height,
                          "sha256": hashlib.sha256(decoded.tobytes()).hexdigest()}
    write_raw_pngs(expected)
    with open(os.path.join(HERE, "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
