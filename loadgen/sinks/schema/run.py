"""run_event and run_summary: what happened, and what came out."""

from __future__ import annotations

from loadgen.sinks.schema.model import ENGINE, RUN, SCENARIO, Field, Measurement, Tag, text

RUN_EVENT = Measurement(
    name="run_event",
    meaning="A phase or a note, for Grafana's annotations. A phase is one point at its start, which gets its "
    "`end_ms` when it ends.",
    source="events.jsonl, notes of gpu.jsonl and engine.jsonl",
    time="when it began",
    tags=(
        RUN,
        SCENARIO,
        ENGINE,
        Tag(
            "kind",
            "`turn`, `warmup` (phases); `cooldown`, `level` (a part of a shape), `run_start`, `run_end`, "
            "`note`, or another kind of event",
        ),
    ),
    fields=(
        text("title", "a few words: `vllm: turn 3`"),
        text("text", "a sentence, where there is more to say"),
        text("tags", "kind and engine, joined by a comma"),
        Field("turn", "turn, from 0"),
        Field("block", "block, from 0"),
        Field("users", "users of the turn", "users"),
        Field("complete", "1 where the turn was complete, else 0; there once it has ended"),
        Field("start_ms", "the point's own time, for addresses that lead to a run", "ms"),
        Field("end_ms", "when the phase ended, wall clock", "ms"),
    ),
)

RUN_SUMMARY = Measurement(
    name="run_summary",
    meaning="One figure of one engine over all measured turns of the run, and how it compares.",
    source="derived.jsonl",
    time="the run's start",
    tags=(
        RUN,
        SCENARIO,
        ENGINE,
        Tag("metric", "`ttft_ms`, `tpot_ms`, `throughput_tokens_per_s`, ...: the summary's names"),
        Tag("class", "traffic class, for the figures of one; its `scenario` is then `SCENARIO: CLASS`"),
    ),
    fields=(
        Field("value", "p50 of a distribution, else the figure; in the metric's own unit"),
        Field("mean", "arithmetic mean"),
        Field("p50", "median, nearest rank"),
        Field("p95", "95th percentile, nearest rank"),
        Field("p99", "99th percentile, nearest rank"),
        Field("n", "samples"),
        Field("higher_is_better", "1 where more is better, else 0"),
        text("baseline", "the engine it is compared with"),
        Field("ratio", "this engine / baseline, from means of blocks"),
        Field("ratio_low", "lower end of the ratio's 95 % interval"),
        Field("ratio_high", "upper end of it"),
        Field("blocks", "complete blocks compared"),
        text("better", "the better engine's name, `no difference` or `not decidable`"),
        text("verdict", "the comparison in one sentence"),
        text("validity", "`valid`, `suspect` or `void`: may the run be believed?"),
        Field("validity_level", "the same as a number: 0, 1 or 2"),
        text("validity_reasons", "why it is not valid"),
        Field("simulated", "1 where the engine is a simulated one, else 0"),
    ),
)
