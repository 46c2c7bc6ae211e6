"""Data-parallel training in a few processes of one thread each, which beats one process with as
many threads here: the operations of a step are too small to split.

Every process holds the whole model, computes the gradient of its own documents, and takes the same
optimiser step with the mean. Shared memory and one barrier carry everything.
"""

import json

import torch

TIMEOUT_S = 600  # a process that died must not hang the others
ORDER_BYTES = 8192


class Exchange:
    """Mean of the gradients over `count` processes; rank 0 also gives orders to the others."""

    def __init__(self, context, count, sizes, loads):
        self.count = count
        self.barrier = context.Barrier(count)
        self.flat = torch.zeros(count, sum(sizes)).share_memory_()
        self.has = torch.zeros(count, len(sizes), dtype=torch.bool).share_memory_()
        self.loads = torch.zeros(count, loads).share_memory_()
        self.order = torch.zeros(ORDER_BYTES, dtype=torch.uint8).share_memory_()

    def tell(self, rank, *values):
        """-> the values of rank 0, for all: what steers a step has to be equal everywhere."""
        if rank == 0:
            text = json.dumps(values).encode().ljust(ORDER_BYTES)
            self.order.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        self.barrier.wait(TIMEOUT_S)
        return json.loads(self.order.numpy().tobytes())

    @torch.no_grad()
    def mean(self, rank, params, experts):
        """Replaces every p.grad by the mean over the processes (None where nobody has one) and
        every expert load by the sum.
        """
        at = 0
        for i, p in enumerate(params):
            slot = self.flat[rank, at : at + p.numel()]
            self.has[rank, i] = p.grad is not None
            slot.zero_() if p.grad is None else slot.copy_(p.grad.view(-1))
            at += p.numel()
        self.loads[rank] = torch.cat([m.load.view(-1) for m in experts])
        self.barrier.wait(TIMEOUT_S)
        has, flat = self.has.any(0).tolist(), self.flat.mean(0)
        at = 0
        for p, some in zip(params, has):
            p.grad = flat[at : at + p.numel()].view_as(p) if some else None
            at += p.numel()
        at, loads = 0, self.loads.sum(0)
        for m in experts:
            m.load.copy_(loads[at : at + m.load.numel()].view_as(m.load))
            at += m.load.numel()
