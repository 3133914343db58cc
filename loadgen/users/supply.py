"""The prompts of a run: the same for every engine, new salts for every block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from loadgen.config import Settings
from loadgen.users.lane import Lane
from loadgen.workload.classes import FIRST_TURN, Wanted
from loadgen.workload.endless import BLOCK, Endless
from loadgen.workload.plan import wanted
from loadgen.workload.prompt import Prompt
from loadgen.workload.promptfile import read_prompt_file
from loadgen.workload.prompts import PromptError, PromptMaker
from loadgen.workload.salt import salted_messages, salts
from loadgen.workload.schedule import Schedule


class PromptSupply:
    """Makes the run's prompts with the tokenizer of the first engine that has one.

    Identical text wins: where engines' tokenizers differ, all get the text that is exact by the first one,
    and `facts` tells what the others count. Raises PromptError.
    """

    def __init__(self, settings: Settings, run_salt: str) -> None:
        self._settings = settings
        self._run_salt = run_salt
        read = read_prompt_file(settings.prompt_file) if settings.prompt_file else None
        self._file = read.prompts if read else None
        self._salts = salts(run_salt)
        self._maker: PromptMaker | None = None
        self._first: Prompt | None = None
        self._blocks: list[list[Prompt]] = []
        self._warmups = 0
        self._system: str | None = None
        self.schedule = Schedule(settings) if settings.open else None
        self.facts: dict[str, Any] = {"run_salt": run_salt, "salted": settings.salt == "on"}
        if self.schedule is not None:
            self.facts.update(self.schedule.facts)
        if read:
            self.facts["file_sha256"] = read.sha256

    def choose(self, lanes: Sequence[Lane]) -> None:
        """Pick the engine that counts, and make the first prompt. Raises PromptError, EngineError."""
        if self._file is not None:
            self.facts.update(file=str(self._settings.prompt_file), prompts_in_file=len(self._file))
            return
        for lane in lanes:
            maker = PromptMaker(
                lane.count,
                self._settings.prompt_tokens,
                seed=self._settings.seed,
                run_salt=self._run_salt,
                lengthen=self._settings.open_loop.trace is not None,
            )
            self._first = maker.make(0, self._wanted(0)[0].prompt_tokens)
            if maker.exact:
                break
        else:
            self._calibrate(maker, lanes)
        self._maker = maker
        self.facts.update(target=self._settings.prompt_tokens, exact=bool(maker.exact))
        if self._settings.exchanges > 1:
            self._system = maker.make_text("system", self._settings.system_tokens)
            self.facts["exact"] = False
        self.facts["counted_by"] = lane.name if maker.exact else None

    def _calibrate(self, maker: PromptMaker, lanes: Sequence[Lane]) -> None:
        self._first = None
        for lane in lanes:
            if lane.engine.counting == "generation":
                maker.calibrate(lane.engine.count_tokens)
                return

    @property
    def caveat(self) -> str | None:
        """A sentence about prompts that are not of the exact length; None if they are."""
        if self._maker is None:
            return None
        if self._maker.exact and self._settings.shape:
            return (
                f"the run's {len(self._blocks[0])} prompts are used again and again, each time with another "
                "salt before them: no cache knows them, and their lengths vary by the few tokens of the salt"
            )
        if self._maker.exact and self._maker.lengthened:
            return (
                f"{self._maker.lengthened} of {sum(map(len, self._blocks))} prompts of the trace are shorter "
                f"than the chat template and the salt alone, and were sent with {self._maker.least} tokens"
            )
        if self._maker.exact:
            return None
        s = self._settings
        if s.exchanges > 1 or s.classes or s.prompt_lengths or s.open_loop.trace:
            return (
                "prompts are only about as long as asked for, since no engine here has a tokenizer to ask; "
                "their true lengths are in the records"
            )
        return (
            f"prompts are only about {self._settings.prompt_tokens} tokens long, since no engine here has a "
            "tokenizer to ask; their true lengths are in the records"
        )

    def check_fit(self, lane: Lane) -> None:
        """Raises PromptError if a file's longest prompt and its answer are more than the engine's context.

        (Prompts that are made have the asked length, which preflight looks at.) The longest text of those
        that will be sent stands for all; where nothing counts tokens, the server will tell.
        """
        if self._file is None or lane.info is None or lane.info.context is None:
            return
        blocks = 1 if self._settings.shape else self._settings.blocks
        used = self._file[: self._settings.turn_requests * blocks]
        longest = max(used, key=lambda prompt: len(prompt.text))
        tokens = lane.count(longest)
        output = longest.output_tokens or self._settings.output_tokens
        if tokens is not None and tokens + output > lane.info.context:
            raise PromptError(
                f"engine {lane.name}: prompt {longest.pair + 1} of {self._settings.prompt_file} has {tokens} "
                f"tokens, which with {output} of output are more than the context of {lane.info.context}: "
                "leave it out, or start the server with a longer context"
            )

    def check_trace(self, lane: Lane) -> None:
        """Raises PromptError if the trace asks for more than the engine's context, before any is made."""
        longest = self.schedule.longest if self.schedule is not None else None
        context = lane.info.context if lane.info is not None else None
        if longest is None or context is None or self._file is not None:
            return
        prompt, output = longest.prompt_tokens or 0, longest.output_tokens or 0
        if prompt + output > context:
            raise PromptError(
                f"engine {lane.name}: the longest request of the trace has {prompt} prompt and {output} "
                f"output tokens, more than the context of {context}: leave such requests out with "
                f"--trace-longest {context}, or start the server with a longer context"
            )

    def look_at(self, lane: Lane) -> None:
        """Learn how this engine counts: the limit for its cache check, and its length of the first prompt."""
        lane.cache.limit = lane.count(Prompt(-1, next(self._salts)))
        if self._maker is not None and self._blocks:
            self.facts.setdefault("first_prompt_tokens", {})[lane.name] = lane.count(self._blocks[0][0])

    def make_blocks(self, progress: Callable[[int, int], None] = lambda done, of: None) -> None:
        """Make all blocks' prompts. Few calls each, but calls: between turns, never in one."""
        blocks = 1 if self._settings.shape else self._settings.blocks
        self._blocks = []
        pair = 0
        for block in range(blocks):
            self._blocks.append([])
            plan = self._wanted(block)
            for want in plan:
                self._blocks[-1].append(self._make(pair, want))
                pair += 1
                progress(pair, blocks * len(plan))
        if self._maker is not None:
            self.facts["count_calls"] = self._maker.counts
            if self._maker.lengthened:
                self.facts["trace_lengthened"] = self._maker.lengthened

    def block(self, number: int) -> list[Prompt]:
        return self._blocks[number]

    def endless(self, number: int) -> Endless:
        """The prompts of a block that has no fixed number of them, the same for every engine."""
        key = f"{self._run_salt}/block {number}" if self._settings.salt == "on" else None
        return Endless(tuple(self._blocks[0]), key, number * BLOCK)

    def due_s(self, block: int) -> list[float] | list[None]:
        """When each prompt of the block is due, in seconds after the turn's start; None in a closed loop."""
        if self.schedule is None:
            return [None] * len(self._blocks[block])
        return [arrival.offset_s for arrival in self.schedule.block(block)]

    def load(self, block: int) -> dict[str, Any]:
        """What an open loop offers in a block, for its events: requests, and in how many seconds."""
        assert self.schedule is not None
        return {"scheduled": len(self._blocks[block]), "schedule_s": self.schedule.seconds(block)}

    def _wanted(self, block: int) -> list[Wanted]:
        return wanted(self._settings, block, self.schedule.block(block) if self.schedule else None)

    def warmups(self) -> Iterator[Prompt]:
        """Endless prompts of about the right length, none of them like another."""
        while True:
            self._warmups += 1
            if self._maker is not None:
                yield self._warmup(self._maker, self._warmups)
            else:
                yield replace(self._from_file(self._warmups), pair=-1)

    def _warmup(self, maker: PromptMaker, number: int) -> Prompt:
        """Of all kinds in turn, as the first block has them."""
        label = f"warm-up {number}"
        if self._system is not None:
            return replace(self._conversation(maker, -1, label), follow_ups=(), traffic_class=None)
        kinds = list(dict.fromkeys(self._wanted(0)))
        kind = kinds[number % len(kinds)]
        prompt = maker.make_rough(label, kind.prompt_tokens)
        return replace(prompt, output_tokens=kind.output_tokens, traffic_class=kind.traffic_class)

    def _make(self, pair: int, want: Wanted) -> Prompt:
        if self._maker is None:
            return self._from_file(pair)
        if self._system is not None:
            return self._conversation(self._maker, pair, f"conversation {pair}")
        first, self._first = self._first, None
        prompt = first if pair == 0 and first is not None else self._maker.make(pair, want.prompt_tokens)
        if want.traffic_class is None and want.output_tokens == self._settings.output_tokens:
            return prompt
        return replace(prompt, output_tokens=want.output_tokens, traffic_class=want.traffic_class)

    def _conversation(self, maker: PromptMaker, pair: int, label: str) -> Prompt:
        """A conversation's first request and its further questions, all of them texts of their own. Their
        lengths are near the ones asked for, and the same for every engine: answers come between them."""
        s = self._settings
        texts = [maker.make_text(f"{label}/{n}", s.prompt_tokens) for n in range(s.exchanges)]
        messages: list[dict[str, Any]] = [{"role": "user", "content": texts[0]}]
        if s.system_tokens:
            messages.insert(0, {"role": "system", "content": self._system})
        return Prompt(
            pair * s.exchanges if pair >= 0 else pair,
            texts[0],
            messages=tuple(messages),
            traffic_class=FIRST_TURN,
            follow_ups=tuple(texts[1:]),
        )

    def _from_file(self, pair: int) -> Prompt:
        assert self._file is not None
        prompt = replace(self._file[pair % len(self._file)], pair=pair)
        if self._settings.salt == "off":
            return prompt
        salt = next(self._salts)
        messages = None if prompt.messages is None else salted_messages(prompt.messages, salt)
        return replace(prompt, text=f"{salt} {prompt.text}", messages=messages)
