"""Makes resize.safetensors: random pictures (K.in) and what Pillow 12.2.0's bicubic resize makes of them (K.out),
U8 [height, width, 3]. The Python test resize_compare_test.py does the same with 300 sizes. Run: python make_resize.py
"""
import json
import os
import struct

import numpy as np
from PIL import Image

SIZES = [((40, 30), (17, 11)), ((9, 7), (31, 26)), ((64, 20), (20, 20)), ((20, 64), (20, 20)), ((1, 1), (5, 3)),
         ((37, 23), (1, 1)), ((50, 12), (13, 40)), ((13, 13), (13, 14))]


def main():
    rng = np.random.default_rng(4)
    header, body = {}, b""
    for number, ((width, height), size) in enumerate(SIZES):
        image = Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))
        for name, value in (("in", image), ("out", image.resize(size, Image.Resampling.BICUBIC))):
            value = np.asarray(value)
            header[f"{number}.{name}"] = {"dtype": "U8", "shape": list(value.shape),
                                          "data_offsets": [len(body), len(body) + value.nbytes]}
            body += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "resize.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    main()
