"""KV memory of a simulated engine: who holds how many tokens, and which prompt prefixes are still there.

Two policies, after the two servers. Both are pure bookkeeping in tokens.

- BlockCache (vLLM): memory in blocks of `block` tokens. A prompt's full blocks are kept under the hash of
  everything before and in them; a later prompt with the same beginning shares them. What nobody uses is
  evicted, least recently used first. When a running sequence finds no free block, one must be preempted.
- SlotCache (llama.cpp): one unified memory and a fixed number of slots. A slot remembers its last
  sequence; a new prompt goes to the free slot with the longest common beginning and keeps that. Idle slots
  are forgotten when memory is short; when what runs no longer fits, all running sequences fail.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, eq=False)
class Holding:
    """What one sequence holds."""

    cached: int = 0
    tokens: int = 0
    blocks: list[int] = field(default_factory=list)  # shared blocks, by hash
    private: int = 0
    slot: int = -1


class KVMemory(Protocol):
    """What the scheduler needs of a policy."""

    preempts: bool
    capacity: int

    def admit(self, prompt: tuple[int, ...], *, reuse: bool) -> Holding | None: ...
    def publish(self, held: Holding, prompt: tuple[int, ...]) -> None: ...
    def grow(self, held: Holding, tokens: int) -> bool: ...
    def release(self, held: Holding, tokens: tuple[int, ...]) -> None: ...
    def used(self) -> int: ...


def _hashes(tokens: tuple[int, ...], block: int, count: int) -> list[int]:
    out: list[int] = []
    h = 0
    for i in range(count):
        h = hash((h, tokens[i * block : (i + 1) * block]))
        out.append(h)
    return out


class BlockCache:
    """Paged KV memory with prefix sharing."""

    preempts = True

    def __init__(self, capacity: int, block: int = 16) -> None:
        self.capacity = capacity
        self.block = block
        self.total = max(1, capacity // block)
        self._refs: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._private = 0

    def _free(self) -> int:
        return self.total - len(self._refs) - self._private

    def admit(self, prompt: tuple[int, ...], *, reuse: bool) -> Holding | None:
        """Blocks for the prompt and one more token; None when there are not enough."""
        hits: list[int] = []
        if reuse:
            for h in _hashes(prompt, self.block, (len(prompt) - 1) // self.block):
                if h not in self._refs and h not in self._idle:
                    break
                hits.append(h)
        revived = sum(h not in self._refs for h in hits)
        private = len(prompt) // self.block + 1 - len(hits)
        if private + revived > self._free():
            return None
        for h in hits:
            self._idle.pop(h, None)
            self._refs[h] = self._refs.get(h, 0) + 1
        self._take(private)
        return Holding(len(hits) * self.block, len(prompt), hits, private)

    def _take(self, count: int) -> None:
        self._private += count
        while self._idle and len(self._idle) > self._free():
            self._idle.popitem(last=False)

    def publish(self, held: Holding, prompt: tuple[int, ...]) -> None:
        """The prompt is computed: its full blocks may be shared from now on."""
        for h in _hashes(prompt, self.block, len(prompt) // self.block)[len(held.blocks) :]:
            if h in self._refs or h in self._idle:
                break  # somebody else computed the same meanwhile; ours stay private
            self._refs[h] = 1
            held.blocks.append(h)
            held.private -= 1
            self._private -= 1

    def grow(self, held: Holding, tokens: int) -> bool:
        """Room for `tokens` in all; False when no block is free."""
        more = -(-tokens // self.block) - len(held.blocks) - held.private
        if more > 0:
            if more > self._free():
                return False
            held.private += more
            self._take(more)
        held.tokens = tokens
        return True

    def release(self, held: Holding, tokens: tuple[int, ...]) -> None:
        """Give everything back; the full blocks of `tokens` stay as cache while there is room."""
        full = _hashes(tokens, self.block, len(tokens) // self.block)
        self._private -= held.private
        for h in held.blocks:
            self._refs[h] -= 1
            if not self._refs[h]:
                del self._refs[h]
                self._idle[h] = None
        for h in full[len(held.blocks) :]:
            if h not in self._refs and h not in self._idle and len(self._idle) < self._free():
                self._idle[h] = None
        held.blocks, held.private, held.tokens = [], 0, 0

    def used(self) -> int:
        return (self.total - self._free()) * self.block


class SlotCache:
    """Slots over one unified KV memory."""

    preempts = False

    def __init__(self, capacity: int, slots: int) -> None:
        self.capacity = capacity
        self._blank = list(range(slots - 1, -1, -1))  # free slots that remember nothing
        self._idle: OrderedDict[int, tuple[int, ...]] = OrderedDict()  # the others, least recently used first
        self._running = 0
        self._remembered = 0

    def admit(self, prompt: tuple[int, ...], *, reuse: bool) -> Holding | None:
        """A slot, the one with the longest common beginning; None when all are taken."""
        best, cached = -1, 0
        for slot, tokens in self._idle.items() if reuse else ():
            n = _common(tokens, prompt)
            if n > cached:
                best, cached = slot, n
        if best >= 0:
            self._remembered -= len(self._idle.pop(best))
        elif self._blank:
            best = self._blank.pop()
        elif self._idle:
            best, tokens = self._idle.popitem(last=False)
            self._remembered -= len(tokens)
        else:
            return None
        self._running += len(prompt)
        self._forget()
        return Holding(min(cached, max(0, len(prompt) - 1)), len(prompt), slot=best)

    def _forget(self) -> None:
        while self._idle and self._running + self._remembered > self.capacity:
            slot, tokens = self._idle.popitem(last=False)
            self._remembered -= len(tokens)
            self._blank.append(slot)

    def publish(self, held: Holding, prompt: tuple[int, ...]) -> None:
        """A slot's memory is its own: nothing to share."""

    def grow(self, held: Holding, tokens: int) -> bool:
        """Room for `tokens` in all; False when everything that runs no longer fits."""
        self._running += tokens - held.tokens
        held.tokens = tokens
        if self._running + self._remembered > self.capacity:
            self._forget()
        return self._running <= self.capacity

    def release(self, held: Holding, tokens: tuple[int, ...]) -> None:
        """The slot is free again and remembers `tokens`."""
        self._running -= held.tokens
        held.tokens = 0
        self._idle[held.slot] = tokens
        self._remembered += len(tokens)
        self._forget()

    def used(self) -> int:
        return self._running


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    n = min(len(a), len(b))
    if not n or a[0] != b[0]:
        return 0
    if a[:n] == b[:n]:
        return n
    lo, hi = 0, n  # a[:lo] equal, a[:hi] not
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if a[:mid] == b[:mid]:
            lo = mid
        else:
            hi = mid
    return lo
