"""State of one sequence (spec section 8.1), in two forms with the same methods: WholeContext
recomputes a whole prefix, SequenceState keeps what a server keeps, with rollback (8.2)."""
import numpy as np


def _cut_groups(projections, first, j0, j1, ratio):
    """Rows [k, 2, C] of positions first.. -> groups j0..j1-1 as [m, ratio, 2, C]."""
    at = [j * ratio - first for j in range(j0, j1)]
    groups = np.array([projections[a:a + ratio] for a in at])
    return groups.reshape(len(at), ratio, *projections.shape[1:]).astype(projections.dtype)


class WholeContext:
    """One chunk that starts at position 0; nothing is forgotten."""
    n = 0

    def __init__(self, config):
        self.config = config
        self.windows, self.keys, self.rows = {}, {}, {}  # by layer, or ("mtp", stage)

    def begin(self, p0, count):
        assert p0 == 0, "a whole context has no earlier chunk"

    def end(self, compressed_ids):
        pass

    def history(self):
        return np.zeros(0, np.int64)

    def put_window(self, owner, p0, rows):
        self.windows[owner] = np.concatenate([self.windows[owner][:p0], rows]) if p0 else rows

    def window(self, owner, p):
        """Rows of the positions that a query at p sees (section 3.4)."""
        return self.windows[owner][max(0, p - self.config.sliding_window + 1):p + 1]

    def complete_groups(self, owner, ratio, p0, projections):
        """Projections [n, 2, C] of a chunk -> (first group, groups that it completes)."""
        return 0, _cut_groups(projections, 0, 0, len(projections) // ratio, ratio)

    def put_keys(self, layer, j0, keys):
        self.keys[layer] = keys

    def put_rows(self, layer, j0, rows):
        self.rows[layer] = rows


class SequenceState:
    """Chunks of any size. The ring has `spare` slots more than the window, so that a rejected
    draft of up to `spare` tokens has not overwritten a row that is needed again."""

    def __init__(self, config, spare=8):
        self.config, self.spare = config, spare
        self.slots, self.n = config.sliding_window + spare, 0
        self.rings, self.chunk_windows = {}, {}
        self.pending, self.saved_pending, self.projections = {}, {}, {}
        self.keys, self.rows = {}, {}
        self.compressed_ids = []  # of the last positions

    def begin(self, p0, count):
        assert p0 == self.n, f"chunk starts at {p0}, state ends at {self.n}"
        self.p0, self.count = p0, count
        self.projections, self.saved_pending = {}, dict(self.pending)

    def end(self, compressed_ids):
        keep = self.config.engram_max_ngram_size - 1 + self.spare
        self.compressed_ids = (self.compressed_ids + [int(i) for i in compressed_ids])[-keep:]
        self.n = self.p0 + self.count

    def history(self):
        return np.array(self.compressed_ids[-(self.config.engram_max_ngram_size - 1):], np.int64)

    def put_window(self, owner, p0, rows):
        width = rows.shape[-1]
        ring = self.rings.setdefault(owner, np.zeros((self.slots, width), rows.dtype))
        oldest = max(0, p0 - self.config.sliding_window + 1)
        old = np.array([ring[p % self.slots] for p in range(oldest, p0)]).reshape(-1, width)
        self.chunk_windows[owner] = (oldest, np.concatenate([old, rows]))
        for i in range(max(0, len(rows) - self.slots), len(rows)):
            ring[(p0 + i) % self.slots] = rows[i]

    def window(self, owner, p):
        first, rows = self.chunk_windows[owner]
        begin = max(0, p - self.config.sliding_window + 1)
        return rows[begin - first:p + 1 - first].astype(rows.dtype)

    def complete_groups(self, owner, ratio, p0, projections):
        self.projections[owner] = ratio, projections  # kept until the next chunk, for rollback
        rows = np.concatenate([self.pending.get(owner, projections[:0]), projections])
        first, j0, j1 = p0 + self.count - len(rows), p0 // ratio, (p0 + self.count) // ratio
        self.pending[owner] = rows[j1 * ratio - first:]
        return j0, _cut_groups(rows, first, j0, j1, ratio)

    def put_keys(self, layer, j0, keys):
        old = self.keys.get(layer, keys[:0])
        self.keys[layer] = np.concatenate([old[:j0], keys])

    def put_rows(self, layer, j0, rows):
        old = self.rows.get(layer, rows[:0])
        self.rows[layer] = np.concatenate([old[:j0], rows])

    def rollback(self, n):
        """Forgets the tokens from position n on; they must be of the last chunk."""
        drop = self.n - n
        assert 0 <= drop <= min(self.count, self.spare)
        for owner, (ratio, projections) in self.projections.items():
            rows = np.concatenate([self.saved_pending.get(owner, projections[:0]), projections])
            first = self.n - len(rows)
            self.pending[owner] = rows[n // ratio * ratio - first:n - first]
        for table in (self.keys, self.rows):
            for layer in table:
                table[layer] = table[layer][:n // self.config.compress_ratios[layer]]
        self.compressed_ids = self.compressed_ids[:len(self.compressed_ids) - drop]
        self.n = n
