"""Vision tower and aligner (spec sections 6.3, 6.4)."""
import math

import numpy as np

from oracle.blocks import Blocks
from oracle.codecs import F32, F64, bf16
from oracle.numerics import rope_frequencies
from oracle.pictures import picture_patches

VISION_EPS = 1e-6


class Vision(Blocks):
    """Uses c.vision, the tower's configuration."""

    def plain_linear(self, x, name, has_bias=True):
        bias = self.w.plain(name + ".bias") if has_bias else None
        return self.num.linear(x, self.w.plain(name + ".weight"), bias)

    def vision_norm(self, x, name):
        return self.num.rms(x, self.w.plain(name + ".weight"), VISION_EPS)

    def vision_angles(self, grid_h, grid_w):
        """(cos, sin) of each patch, [N, 1, Hd/2]: half of the pairs turn by row, half by column."""
        v, num = self.c.vision, self.num
        f = rope_frequencies(v.hidden_size // v.num_attention_heads // 2, v.rope_theta)
        row, col = np.divmod(np.arange(grid_h * grid_w), grid_w)
        angle = np.concatenate([row.astype(F32)[:, None] * f, col.astype(F32)[:, None] * f], -1)
        angle = angle.astype(F64)
        return num.f(np.cos(angle))[:, None], num.f(np.sin(angle))[:, None]

    def rotate_halves(self, t, cos, sin):
        num, half = self.num, t.shape[-1] // 2
        a, b = num.f(t[..., :half]), num.f(t[..., half:])
        return num.bf(np.concatenate([a * cos - b * sin, b * cos + a * sin], -1))

    def vision_attention(self, x, name, angles):
        v, num = self.c.vision, self.num
        heads, width = v.num_attention_heads, v.hidden_size // v.num_attention_heads
        qkv = self.plain_linear(x, name + ".wqkv").reshape(len(x), 3 * heads, width)
        q, k, value = np.split(qkv, 3, 1)
        q, k = self.rotate_halves(q, *angles), self.rotate_halves(k, *angles)
        o = np.empty_like(q)
        for h in range(heads):
            z = num.f(q[:, h].astype(F64) @ k[:, h].astype(F64).T) * num.dtype(width ** -0.5)
            e = np.exp(z - z.max(-1, keepdims=True))
            total = num.f(e.astype(F64).sum(-1, keepdims=True))
            p = bf16(e) if num.round_probabilities else e
            o[:, h] = num.bf(num.f(p.astype(F64) @ value[:, h].astype(F64)) / total)
        return self.plain_linear(o.reshape(len(x), -1), name + ".wo")

    def vit(self, patches, grid_h, grid_w):
        """6.3: patches [N, 3·P·P] -> features [N, C]."""
        num = self.num
        angles = self.vision_angles(grid_h, grid_w)
        x = self.plain_linear(patches, "vision.patch_embed.proj")
        for b in range(self.c.vision.num_hidden_layers):
            name = f"vision.blocks.{b}"
            n = self.vision_norm(x, name + ".norm1")
            x = num.bf(x + self.vision_attention(n, name + ".attn", angles))
            n = self.vision_norm(x, name + ".norm2")
            gate, up = np.split(self.plain_linear(n, name + ".mlp.w1", False), 2, -1)
            y = num.bf(num.bf(num.silu(gate)) * up)
            x = num.bf(x + self.plain_linear(y, name + ".mlp.w2", False))
        return self.tap("vision.out", self.vision_norm(x, "vision.norm"))

    def align(self, x, grid_h, grid_w):
        """6.4: features [grid_h·grid_w, C] -> model rows, one for each square of patches; index in
        a square: channel, then row, then column."""
        num, ratio = self.num, self.c.vision.downsample_ratio
        x = x.reshape(grid_h, grid_w, -1)
        x = np.pad(x, ((0, -grid_h % ratio), (0, -grid_w % ratio), (0, 0)))
        rows, columns = x.shape[0] // ratio, x.shape[1] // ratio
        x = x.reshape(rows, ratio, columns, ratio, -1).transpose(0, 2, 4, 1, 3)
        x = self.plain_linear(x.reshape(rows * columns, -1), "aligner.w1").astype(F64)
        erf = np.vectorize(math.erf, otypes=[F64])
        x = num.bf(num.f(0.5 * x * (1 + erf(x / math.sqrt(2)))))
        return self.tap("aligner.out", self.plain_linear(x, "aligner.w2"))

    def encode_picture(self, image):
        """uint8 [H, W, 3] -> (model rows, token grid rows, token grid columns)."""
        patches, grid_h, grid_w, rows, columns = picture_patches(image, self.c.vision)
        features = self.vit(self.tap("vision.patches", patches), grid_h, grid_w)
        return self.align(features, grid_h, grid_w), rows, columns
