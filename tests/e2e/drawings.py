"""Pictures that tests draw, and how the API takes them."""

import base64
import pathlib

from PIL import Image, ImageDraw


def report_picture(folder):
    """Draws report A's picture as a PNG; returns its path."""
    image = Image.new("RGB", (1554, 1078), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((80, 80, 480, 330), fill=(255, 0, 0))
    draw.ellipse((560, 400, 1000, 680), fill=(0, 160, 0))
    draw.rectangle((1100, 760, 1480, 1000), fill=(0, 0, 255))
    path = pathlib.Path(folder) / "report-a.png"
    image.save(path)
    return path


def data_url(raw, kind="png"):
    return f"data:image/{kind};base64," + base64.b64encode(raw).decode()


def picture_message(*urls, text):
    """A user turn of pictures and a question behind them."""
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]
