"""Exam items: the ones that the package ships, a person's own (JSONL), the full sets from a folder."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .numbers import reference_number

GSM8K, MMLU, LONGFORM = "gsm8k", "mmlu", "longform"
TASKS = (GSM8K, MMLU, LONGFORM)
SEED = 2
_SHIPPED = {GSM8K: "gsm8k_200.jsonl", MMLU: "mmlu_228.jsonl", LONGFORM: "longwrite_60.jsonl"}


class ItemError(ValueError):
    """Items that cannot be used; the text is a sentence that names the file and the line."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `answer` is the index of the right choice where there are `choices`, else a text that
    ends in the right number (`#### 18`) or is the right answer; None where nothing is right or wrong
    (longform)."""

    task: str
    id: str
    question: str
    answer: int | str | None = None
    choices: tuple[str, ...] = ()
    subject: str | None = None
    words: int | None = None  # longform: the wanted length

    @property
    def numeric(self) -> bool:
        """Whether the answer is a number."""
        if self.choices or not isinstance(self.answer, str):
            return False
        try:
            reference_number(self.answer)
        except ValueError:
            return False
        return True


def shipped_items(task: str) -> list[Item]:
    """The items of a task that come with the package: 200 of GSM8K, 228 of MMLU (4 of each of 57 subjects),
    60 long-writing prompts. Raises ItemError for another task."""
    if task not in _SHIPPED:
        raise ItemError(f"There is no task {task!r}; the package has {', '.join(TASKS)}.")
    return parse_items(_data(_SHIPPED[task]), task, _SHIPPED[task])


def mmlu_examples() -> dict[str, tuple[Item, ...]]:
    """The five worked examples of each MMLU subject (the dev set)."""
    return _by_subject(parse_items(_data("mmlu_dev.jsonl"), MMLU, "mmlu_dev.jsonl"))


def own_items(path: Path, task: str | None = None) -> list[Item]:
    """A person's own items: a JSON object a line with `question`, and `choices` with `answer` (the index
    from 0, the letter, or the choice itself) or `answer` alone (a number or a text) or neither (longform,
    with `words` wanted); `id` and `subject` if wished. The task is named after the file unless told. Raises
    ItemError."""
    task = task or path.stem
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ItemError(f"{path} cannot be read: {error}.") from None
    return parse_items(text, task, str(path))


def folder_items(folder: Path, task: str) -> list[Item]:
    """A full test set as its authors publish it: FOLDER/gsm8k/test.jsonl, or
    FOLDER/mmlu/test/SUBJECT_test.csv. FOLDER may be the inner folder too. Ids are those of the shipped
    subsets. Raises ItemError."""
    if task == GSM8K:
        path = _existing(folder / "gsm8k" / "test.jsonl", folder / "test.jsonl")
        return [_with_id(item, f"gsm8k-test-{n}") for n, item in enumerate(own_items(path, GSM8K))]
    if task == MMLU:
        test = _existing(folder / "mmlu" / "test", folder / "test")
        files = sorted(test.glob("*_test.csv"))
        if not files:
            raise ItemError(f"{test} holds no SUBJECT_test.csv.")
        return [item for path in files for item in _mmlu_csv(path, path.name[: -len("_test.csv")])]
    raise ItemError(f"Of {task} there is no full set to read from a folder; gsm8k and mmlu have one.")


def pick(items: Sequence[Item], n: int | None, seed: int = SEED) -> list[Item]:
    """n of the items in their own order, always the same n; spread over the subjects as evenly as they allow,
    and n + 1 items hold the n. All of them where n is None or larger."""
    if n is None or n >= len(items):
        return list(items)
    rng = random.Random(seed)
    drawn = sorted((rng.random(), at) for at in range(len(items)))
    seen: dict[str | None, int] = {}
    ranked = []
    for order, at in drawn:
        round_ = seen[items[at].subject] = seen.get(items[at].subject, -1) + 1
        ranked.append((round_, order, at))
    return [items[at] for at in sorted(at for _, _, at in sorted(ranked)[:n])]


def parse_items(text: str, task: str, name: str) -> list[Item]:
    """Items of JSON lines; `name` is what an error calls the file. Raises ItemError."""
    items: list[Item] = []
    ids: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        item = _item(_object(line, where), task, len(items), where)
        if item.id in ids:
            raise ItemError(f"{where}: the id {item.id!r} is there already.")
        ids.add(item.id)
        items.append(item)
    if not items:
        raise ItemError(f"{name} holds no items.")
    return items


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise ItemError(f"{where}: is no JSON.") from None
    if not isinstance(row, dict):
        raise ItemError(f"{where}: is no JSON object.")
    return row


def _item(row: dict[str, Any], task: str, at: int, where: str) -> Item:
    question, subject, words = row.get("question"), row.get("subject"), row.get("words")
    if not isinstance(question, str) or not question.strip():
        raise ItemError(f"{where}: has no question.")
    if subject is not None and not isinstance(subject, str):
        raise ItemError(f"{where}: the subject is no text.")
    if words is not None and (not isinstance(words, int) or isinstance(words, bool) or words < 1):
        raise ItemError(f"{where}: words, the wanted length, is no whole number above 0.")
    identity = row.get("id", f"{task}-{at}")
    if isinstance(identity, bool) or not isinstance(identity, (str, int)):
        raise ItemError(f"{where}: the id is no text.")
    choices, answer = _choices(row, where), row.get("answer")
    if choices:
        answer = _index(answer, choices, where)
    elif isinstance(answer, (int, float)) and not isinstance(answer, bool):
        answer = str(answer)
    elif answer is not None and (not isinstance(answer, str) or not answer.strip()):
        raise ItemError(f"{where}: the answer is neither a text nor a number.")
    if task == GSM8K:
        try:
            reference_number(str(answer or ""))
        except ValueError as error:
            raise ItemError(f"{where}: the answer {error}.") from None
    return Item(task, str(identity), question, answer, choices, subject, words)


def _choices(row: dict[str, Any], where: str) -> tuple[str, ...]:
    choices = row.get("choices")
    if choices is None:
        return ()
    if not isinstance(choices, list) or not 2 <= len(choices) <= 26:
        raise ItemError(f"{where}: choices is no list of 2 to 26 texts.")
    if not all(isinstance(choice, (str, int, float)) and not isinstance(choice, bool) for choice in choices):
        raise ItemError(f"{where}: a choice is no text.")
    return tuple(str(choice) for choice in choices)


def _index(answer: object, choices: tuple[str, ...], where: str) -> int:
    """Of the right choice, from its index, its letter or itself. A text among the choices is the choice."""
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices):
        return answer
    if isinstance(answer, str):
        if choices.count(answer) == 1:
            return choices.index(answer)
        at = ord(answer.strip().upper()) - ord("A") if len(answer.strip()) == 1 else -1
        if 0 <= at < len(choices):
            return at
    raise ItemError(f"{where}: the answer {answer!r} is none of the {len(choices)} choices.")


def _mmlu_csv(path: Path, subject: str) -> list[Item]:
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ItemError(f"{path} cannot be read: {error}.") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 6 or row[5].strip() not in tuple("ABCD"):
            raise ItemError(f"{path}, row {number}: is not question,A,B,C,D,letter.")
    return [
        Item(MMLU, f"mmlu-{subject}-{n}", row[0], "ABCD".index(row[5].strip()), tuple(row[1:5]), subject)
        for n, row in enumerate(rows)
    ]


def _existing(*paths: Path) -> Path:
    for path in paths:
        if path.exists():
            return path
    raise ItemError(f"{paths[0]} does not exist.")


def _with_id(item: Item, identity: str) -> Item:
    return Item(item.task, identity, item.question, item.answer, item.choices, item.subject, item.words)


def _by_subject(items: Iterable[Item]) -> dict[str, tuple[Item, ...]]:
    out: dict[str, tuple[Item, ...]] = {}
    for item in items:
        out[item.subject or ""] = (*out.get(item.subject or "", ()), item)
    return out


def _data(name: str) -> str:
    return (resources.files("loadgen.quality") / "data" / name).read_text(encoding="utf-8")
