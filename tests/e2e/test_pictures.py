"""Pictures through the API (HTTP API section 15, I1 to I4 and I6)."""

import io
import struct
import unittest
import zlib

import numpy
from PIL import Image

from drawings import data_url, picture_message
from program import Server

GREEDY = {"temperature": 0, "max_tokens": 8, "thinking": {"type": "disabled"}}


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def message(*urls, text="What is in this picture?"):
    return picture_message(*urls, text=text)


def png_header(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return (b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk +
            struct.pack(">I", zlib.crc32(chunk)))


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        rng = numpy.random.default_rng(5)
        cls.image = Image.fromarray(rng.integers(0, 255, (90, 120, 3), dtype=numpy.uint8))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def post(self, messages, **fields):
        return self.server.ask("POST", "/v1/chat/completions",
                               {"messages": messages, **GREEDY, **fields})

    def refused(self, messages, code):
        status, raw, _ = self.post(messages)
        self.assertEqual(status, 400, raw[:300])
        self.assertIn(f'"code":"{code}"'.encode(), raw)
        self.assertIn(b'"param":"messages[0].content[0].image_url.url"', raw)

    def test_i1_four_formats(self):
        text_only = self.server.chat("What is in this picture?", **GREEDY)["usage"]["prompt_tokens"]
        counts = set()
        for kind in ("png", "jpeg", "webp", "gif"):
            usage = self.server.chat(message(data_url(encoded(self.image, kind), kind)),
                                     **GREEDY)["usage"]
            self.assertGreater(usage["prompt_tokens"], text_only + 10)
            self.assertGreater(usage["prompt_tokens_details"]["image_tokens"], 10)
            counts.add(usage["prompt_tokens"])
        self.assertEqual(len(counts), 1, "the same size takes the same tokens")

    def test_i1_lossless_formats_give_the_same_answer(self):
        answers = {self.server.chat(message(data_url(encoded(self.image, kind, **options), kind)),
                                    **GREEDY)["choices"][0]["message"]["content"]
                   for kind, options in (("png", {}), ("webp", {"lossless": True}))}
        self.assertEqual(len(answers), 1)

    def test_i2_the_bytes_decide_and_not_the_label(self):
        raw = encoded(self.image, "webp", lossless=True)
        self.server.chat(message(data_url(raw, "png")), **GREEDY)
        self.refused(message(data_url(b"plain text", "png")), "invalid_image")
        self.refused(message(data_url(encoded(self.image, "bmp"), "png")),
                     "unsupported_image_format")
        for kind in ("svg+xml", "png"):
            status, _, _ = self.post(message(data_url(b"<svg xmlns='x'/>", kind)))
            self.assertEqual(status, 400)

    def test_i3_bombs_and_damage(self):
        before = self.server.rss_bytes()
        self.refused(message(data_url(png_header(65535, 65535) + b"\0" * 100)), "image_too_large")
        flat = Image.new("L", (16000, 16000))
        self.refused(message(data_url(encoded(flat, "png"))), "image_too_large")
        cut = encoded(self.image, "jpeg")
        self.refused(message(data_url(cut[:len(cut) // 2], "jpeg")), "invalid_image")
        self.refused(message("data:image/png;base64,@@@"), "invalid_image")
        self.assertLess(self.server.rss_bytes() - before, 100 << 20)
        small = data_url(encoded(self.image, "png"))
        status, raw, _ = self.post(message(*[small] * 17))
        self.assertEqual(status, 400, "17 pictures")
        self.server.chat("hi", **GREEDY)

    def test_i4_nothing_is_fetched(self):
        replies = set()
        for url in ("http://127.0.0.1:1/x.png", "https://example.org/x.png", "file:///etc/hostname",
                    "/etc/hostname", "ftp://127.0.0.1/x", "", "http://169.254.169.254/latest"):
            status, raw, _ = self.post(message(url))
            self.assertEqual(status, 400)
            replies.add(raw)
        self.assertEqual(len(replies), 1, "nothing can be learnt from the text")
        self.assertIn(b"image_url_disabled", replies.pop())

    def test_i6_another_picture_is_not_taken_from_the_cache(self):
        other = data_url(encoded(self.image.rotate(180), "png"))
        first = data_url(encoded(self.image, "png"))
        def prompt(url):
            answer = self.server.chat(message(url), **GREEDY)
            text = answer["choices"][0]["message"]["content"]
            turn = [{"role": "assistant", "content": text}, {"role": "user", "content": "And now?"}]
            return self.server.chat(message(url) + turn, **GREEDY)["usage"]
        prompt(first)
        fresh = self.server.chat(message(other) + [
            {"role": "assistant", "content": "x"}, {"role": "user", "content": "And now?"}],
            **GREEDY)
        self.assertEqual(fresh["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_logs_hold_no_picture(self):
        url = data_url(encoded(self.image, "png"))
        self.server.chat(message(url), **GREEDY)
        self.assertNotIn(url[100:160], self.server.log_text())


if __name__ == "__main__":
    unittest.main()
