"""DSpark, the drafter (spec section 7)."""
import numpy as np

from oracle.attention import Attention


class Drafts(Attention):
    """Stages mtp.0 to mtp.{n-1}; each keeps a window of its own in the context."""

    def seed_drafts(self, main_hidden, p0, context):
        """7.2: window rows of every stage for committed positions p0.., from their M rows."""
        x = self.norm(self.dense(main_hidden, "mtp.0.main_proj"), "mtp.0.main_norm")
        x = self.tap("draft.main_x", x)
        pos = p0 + np.arange(len(main_hidden))
        for i in range(self.c.num_nextn_predict_layers):
            rows = self.window_latent(x, f"mtp.{i}.attn", pos, False)
            context.put_window(("mtp", i), p0, rows)

    def draft(self, y, p, context):
        """7.3: y is the token of position p+1, the windows hold rows up to p
        -> (drafts, logits [block, V], confidence [block])."""
        c, num, w = self.c, self.num, self.w
        ids = np.array([y] + [c.dspark_noise_token_id] * (c.dspark_block_size - 1))
        streams, pre = self.initial_streams(num.f(w.plain("embed.weight")[ids]))
        is_picture = np.zeros(len(ids), bool)
        experts = c.dspark_n_routed_experts, c.dspark_num_experts_per_tok
        for i in range(c.num_nextn_predict_layers):
            name = f"mtp.{i}"
            streams, pre = self.tap(name + ".x_in", streams), self.tap(name + ".pre_in", pre)
            window = context.window(("mtp", i), p)
            streams, pre = self.block(name, streams, pre,
                                      lambda x: self.draft_attention(x, name, p, window),
                                      experts, is_picture)
        h = self.tap("draft.h", self.collapse(streams, pre))
        return self.draft_tokens(y, h)

    def draft_attention(self, x, name, p, window):
        """Every query sees the whole window and the whole block."""
        pos = p + 1 + np.arange(len(x))
        _, q = self.query(x, name, pos, False)
        rows = np.concatenate([window, self.window_latent(x, name + ".attn", pos, False)])
        sink = self.num.f(self.w.plain(name + ".attn.attn_sink"))
        o = np.stack([self.attend(row, rows, sink) for row in q])
        return self.output(o, name, pos, False)

    def draft_tokens(self, y, h):
        """The greedy chain through the Markov head."""
        num, w = self.num, self.w
        last = f"mtp.{self.c.num_nextn_predict_layers - 1}"
        base = num.mm(self.norm(h, last + ".norm"), w.plain("head.weight"))
        base = self.tap("draft.base_logits", base)
        embed, head = (w.plain(f"{last}.markov_head.{part}.weight") for part in ("embed", "head"))
        confidence_weight = w.plain(last + ".confidence_head.proj.weight")
        chain, embeds, logits, confidence = [y], [], [], []
        for i in range(len(h)):
            embeds.append(num.f(embed[chain[-1]]))
            logits.append(base[i] + num.mm(embeds[-1], head))
            confidence.append(num.mm(np.concatenate([h[i], embeds[-1]]), confidence_weight)[0])
            chain.append(int(np.argmax(logits[-1])))
        self.tap("draft.markov_embed", np.array(embeds))
        self.tap("draft.ids", np.array(chain))
        return (chain[1:], self.tap("draft.logits", np.array(logits)),
                self.tap("draft.confidence", np.array(confidence)))
