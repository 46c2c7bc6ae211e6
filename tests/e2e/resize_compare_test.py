"""Holds our decoders, resampler and resize plan against Pillow, byte for byte, on random pictures.

    build/venv/bin/python tests/e2e/resize_compare_test.py [build/dev/picture_tool]

Pillow up to 12.3: later ones run the two passes in another order for some shapes (spec 6.2).
"""
import io
import itertools
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image, ImageOps

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "build", "dev", "picture_tool")
PATCH, RATIO, TOKENS_MAX, MIN_PIXELS = 14, 3, 1024, 295936  # the released model


class Tool:
    """The picture_tool process and a scratch folder."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, kind, data, *numbers):
        """-> (height x width x 3 array, None) or (None, the error)."""
        source, out = (os.path.join(self.folder.name, name) for name in ("in", "out"))
        with open(source, "wb") as file:
            file.write(data)
        self.process.stdin.write(" ".join(map(str, [kind, source, *numbers, out])) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok "):
            return None, answer
        width, height = map(int, answer.split()[1:])
        return np.fromfile(out, np.uint8).reshape(height, width, 3), None

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


def random_picture(rng, width, height, channels=3):
    """Noise, or smooth blobs with hard edges: what resamplers and codecs get wrong differs."""
    if rng.random() < 0.5:
        return rng.integers(0, 256, (height, width, channels), np.uint8)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for _ in range(channels):
        wave = x * rng.uniform(0, 0.3) + y * rng.uniform(0, 0.3) + rng.uniform(0, 6)
        plane = 127 + 127 * np.sin(wave)
        distance2 = (x - width * rng.random()) ** 2 + (y - height * rng.random()) ** 2
        plane[distance2 < (width / 4) ** 2] = rng.uniform(0, 255)
        planes.append(plane)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def random_size(rng, side_max):
    return int(rng.integers(1, side_max)), int(rng.integers(1, side_max))


def encode(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def plan_box(width, height):
    """Spec 6.1 for the released model, without the tiny-picture and thin-picture cases' errors."""
    w, h = width, height
    if w * h < MIN_PIXELS:
        factor = math.sqrt(MIN_PIXELS / (w * h))
        w, h = int(w * factor), int(h * factor)
    box = [math.ceil(w / PATCH) * PATCH, math.ceil(h / PATCH) * PATCH]
    columns, rows = (-(-(side // PATCH) // RATIO) for side in box)
    if rows * (columns + 1) + 2 > TOKENS_MAX:
        cell = PATCH * RATIO
        mw = math.sqrt((TOKENS_MAX - 2) / (h / w) + 0.25) - 0.5
        mh = mw * (h / w)
        if mw < 1:
            box = [cell, (TOKENS_MAX - 2) // 2 * cell]
        elif mh < 1:
            box = [(TOKENS_MAX - 3) * cell, cell]
        else:
            beta = min(math.floor(mw) * cell / w, math.floor(mh) * cell / h)
            box = [math.floor(w * beta / PATCH) * PATCH, math.floor(h * beta / PATCH) * PATCH]
    return box


def pillow_canvas(image):
    """What the official processor does with Pillow (spec 6.2)."""
    box = plan_box(*image.size)
    return np.asarray(ImageOps.pad(image, box, Image.Resampling.BICUBIC, color=(127, 127, 127)))


class PictureCompare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool()

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def assert_equal(self, data, want, kind="decode", numbers=()):
        found, error = self.tool.ask(kind, data, *numbers)
        self.assertIsNone(error)
        np.testing.assert_array_equal(found, want)

    def test_resize_of_300_random_pictures(self):
        rng = np.random.default_rng(5)
        for number in range(300):
            # Height below 100 x width: above it Pillow's order of passes depends on its version.
            width, height = int(2 ** rng.uniform(2.4, 8.6)), int(2 ** rng.uniform(0, 8.6))
            to_width, to_height = (int(2 ** rng.uniform(0, 9)) for _ in range(2))
            with self.subTest(number=number, size=(width, height), to=(to_width, to_height)):
                image = Image.fromarray(random_picture(rng, width, height))
                want = image.resize((to_width, to_height), Image.Resampling.BICUBIC)
                self.assert_equal(encode(image, "PNG"), np.asarray(want), "resize",
                                  (to_width, to_height))

    def test_canvas_of_60_random_pictures(self):
        rng = np.random.default_rng(6)
        sizes = [(1554, 1078), (1344, 1344), (1, 1), (2000, 100), (3000, 30), (20, 4000)]
        sizes += [(int(2 ** rng.uniform(4, 11)), int(2 ** rng.uniform(4, 11))) for _ in range(54)]
        for size in sizes:
            if max(size) > 400 * min(size):
                continue
            with self.subTest(size=size):
                image = Image.fromarray(random_picture(rng, *size))
                self.assert_equal(encode(image, "PNG"), pillow_canvas(image), "canvas")

    def test_png_kinds(self):
        rng = np.random.default_rng(7)
        for number in range(20):
            image = Image.fromarray(random_picture(rng, *random_size(rng, 80)))
            for mode in ("RGB", "L", "P", "1"):
                with self.subTest(number=number, mode=mode):
                    small = image.convert(mode)
                    self.assert_equal(encode(small, "PNG"), np.asarray(small.convert("RGB")))

    def test_alpha_is_blended_on_white(self):
        rng = np.random.default_rng(8)
        pixels = random_picture(rng, 61, 47, 4)
        colour, alpha = pixels[..., :3].astype(int), pixels[..., 3:].astype(int)
        want = ((colour * alpha + 255 * (255 - alpha)) * 2 + 255) // 510
        image = Image.fromarray(pixels)
        self.assert_equal(encode(image, "PNG"), want)
        self.assert_equal(encode(image, "WEBP", lossless=True, exact=True), want)

    def test_jpeg_kinds(self):
        rng = np.random.default_rng(9)
        for number in range(60):
            image = Image.fromarray(random_picture(rng, *random_size(rng, 120)))
            mode = ("RGB", "RGB", "L", "CMYK")[number % 4]
            options = {"quality": int(rng.integers(10, 101)), "progressive": bool(rng.integers(2))}
            if mode == "RGB":
                options["subsampling"] = int(rng.integers(3))
            with self.subTest(number=number, mode=mode, **options):
                data = encode(image.convert(mode), "JPEG", **options)
                self.assert_equal(data, np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))

    def test_orientations(self):
        image = Image.fromarray(random_picture(np.random.default_rng(10), 40, 24))
        kinds = (("JPEG", {}), ("PNG", {}), ("WEBP", {}), ("WEBP", {"lossless": True}))
        for (kind, options), orientation in itertools.product(kinds, range(1, 9)):
            with self.subTest(kind=kind, orientation=orientation, **options):
                exif = Image.Exif()
                exif[0x0112] = orientation
                data = encode(image, kind, exif=exif, **options)
                turned = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
                self.assert_equal(data, np.asarray(turned.convert("RGB")))

    def test_webp_and_gif(self):
        rng = np.random.default_rng(11)
        for number in range(20):
            image = Image.fromarray(random_picture(rng, *random_size(rng, 90)))
            kinds = (("WEBP", {"quality": 80}), ("WEBP", {"lossless": True}), ("GIF", {}))
            for kind, options in kinds:
                with self.subTest(number=number, kind=kind, **options):
                    data = encode(image, kind, **options)
                    self.assert_equal(data, np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))

    def test_cut_files_are_refused(self):
        image = Image.fromarray(random_picture(np.random.default_rng(12), 50, 40))
        chance = random.Random(13)
        kinds = (("PNG", {}), ("JPEG", {}), ("JPEG", {"progressive": True}), ("WEBP", {}),
                 ("GIF", {}))
        for kind, options in kinds:
            data = encode(image, kind, **options)
            for _ in range(20):
                length = chance.randrange(len(data) - 2)
                with self.subTest(kind=kind, length=length, of=len(data)):
                    found, error = self.tool.ask("decode", data[:length])
                    self.assertIsNone(found)
                    self.assertRegex(error, "^error (invalid argument|unsupported) ")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
