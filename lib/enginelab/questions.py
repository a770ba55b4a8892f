"""The question bank: what somebody who knows the lesson can answer, and a reason for every answer. (Cards and quiz.)

`questions.toml`, beside this file, holds the words. It types no result: where a number or a verdict of the library
belongs, it says `{name}` or `{name:.0f}`, a key of `values` and how to write it. What has changed since the lesson is
named there too, and read from `engines` and `flags`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import batching, choosing, commands, engines, flags, planner, routing

BANK = Path(__file__).with_suffix(".toml")
KINDS = ("one", "several", "number")
PLACE = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Option:
    """One possible answer, and why it is right or wrong. `number` is its value if the question asks for a number."""

    text: str
    why: str
    right: bool
    number: float | None = None


@dataclass(frozen=True)
class Question:
    """One question. Its texts hold code between backquotes, and no other markup.

    id       stable and readable, unique in the bank
    topic    one of the bank's topics
    chapter  the page that has the long form, `chapters/…` without suffix
    kind     "one" right option, "several", or a "number" to be typed; then the options are the right number and known
             slips
    facts    keys of the lesson's facts that it asks for (tests/lesson_facts.toml)
    unit     of a number, or ""
    within   how far a typed number may be off, in `unit`
    today    what has changed since the lesson, each with its date and source
    """

    id: str
    topic: str
    chapter: str
    kind: str
    ask: str
    options: tuple[Option, ...]
    facts: tuple[str, ...]
    unit: str = ""
    within: float = 0.0
    today: tuple[str, ...] = ()

    def __post_init__(self):
        right = [option for option in self.options if option.right]
        if self.kind not in KINDS:
            raise ValueError(f"{self.id}: kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if not right or len(right) == len(self.options) or (self.kind != "several" and len(right) > 1):
            raise ValueError(f"{self.id}: {len(right)} right of {len(self.options)} options do not make a question")
        if len({option.text for option in self.options}) < len(self.options):
            raise ValueError(f"{self.id}: two options read alike")
        if not all(option.why for option in self.options):
            raise ValueError(f"{self.id}: every option needs its reason")
        if self.kind == "number" and any(not o.right and self.accepts(o.number) for o in self.options):
            raise ValueError(f"{self.id}: a slip would count as right")

    @property
    def right(self) -> tuple[Option, ...]:
        """The right options, in the order shown."""
        return tuple(option for option in self.options if option.right)

    def accepts(self, typed: float) -> bool:
        """Whether `typed`, in `unit`, answers a question for a number."""
        return self.kind == "number" and abs(typed - self.right[0].number) <= self.within


def values() -> dict[str, float | str]:
    """Every number and verdict that the bank's texts may name, computed here and now."""
    lengths, slots = (2, 8, 3, 5, 3, 4), 4
    static, continuous = batching.static(lengths, slots), batching.continuous(lengths, slots)
    demand, speeds = planner.demand(30, 2_000, 500), (20_000, 5_000)
    workers, doubled = planner.replicas(30, 2_000, 500, *speeds), planner.replicas(60, 2_000, 500, *speeds)
    prompt, cached = 1_200, 1_000
    sglang, trtllm = commands.LESSON_SGLANG, commands.LESSON_TENSORRT_LLM
    fraction = float(trtllm.value("--kv_cache_free_gpu_memory_fraction"))
    return {
        "slots": slots,
        "static_steps": static.steps,
        "first_batch": batching.static(lengths[:slots], slots).steps,
        "second_batch": batching.static(lengths[slots:], slots).steps,
        "continuous_steps": continuous.steps,
        "one_slot_steps": batching.continuous(lengths, 1).steps,
        "full_slots_steps": -(-static.useful_slot_steps // slots),
        "useful": static.useful_slot_steps,
        "static_all": static.slot_steps,
        "continuous_all": continuous.slot_steps,
        "static_used": 100 * static.utilization,
        "static_idle": 100 - 100 * static.utilization,
        "continuous_used": 100 * continuous.utilization,
        "continuous_idle": 100 - 100 * continuous.utilization,
        "speedup": static.steps / continuous.steps,
        "steps_ratio": continuous.steps / static.steps,
        "reused_slots": sum(
            sum(run.slot == slot for run in continuous.runs) > 1 for slot in range(1, continuous.slots + 1)
        ),
        "last_starts": continuous.runs[5].first_step,
        "last_ends": continuous.runs[5].last_step,
        "last_slot": continuous.runs[5].slot,
        "vllm_gpus": int(commands.LESSON_VLLM.value("--tensor-parallel-size")),
        "eagle_steps": int(sglang.value("--speculative-num-steps")),
        "eagle_topk": int(sglang.value("--speculative-eagle-topk")),
        "eagle_tokens": int(sglang.value("--speculative-num-draft-tokens")),
        "trt_requests": int(trtllm.value("--max_batch_size")),
        "trt_tokens": int(trtllm.value("--max_num_tokens")),
        "trt_sequence": int(trtllm.value("--max_seq_len")),
        "trt_kv_of_50": fraction * 50,
        "trt_kv_of_80": fraction * 80,
        "trt_kv_left": (1 - fraction) * 50,
        "uncached": prompt - cached,
        "prompt": prompt,
        "cached": cached,
        "saved": 100 * routing.prefill_saved(prompt, cached),
        "not_saved": 100 - 100 * routing.prefill_saved(prompt, cached),
        "new_over_cached": 100 * (prompt - cached) / cached,
        "prefill_demand": demand.prefill,
        "decode_demand": demand.decode,
        "both_demands": demand.prefill + demand.decode,
        "prefill_workers": workers.prefill,
        "decode_workers": workers.decode,
        "all_workers": sum(workers),
        "doubled_prefill": doubled.prefill,
        "doubled_all": sum(doubled),
        "mixed_up_workers": demand.prefill / speeds[1],
        "pick_h100": choosing.engine(hopper_or_newer=True, supported=True, top_performance=True).name,
        "pick_a100_moe": choosing.engine(supported=True, top_performance=True, large_moe=True).name,
        "pick_small_gpu": choosing.engine().name,
        "pick_relaxed": choosing.engine(hopper_or_newer=True, supported=True).name,
        "pick_video": choosing.engine(hopper_or_newer=True, top_performance=True, image_or_video=True).name,
        "pick_low_traffic": choosing.dynamo(high_volume=False, many_gpus=True, foundation_model=True).name,
        **{
            f"{engine.name.lower().replace('-', '_')}_{topic.lower().replace(' ', '_')}": engine.claim(topic).lesson
            for engine in engines.ENGINES
            for topic in ("Performance", "Ease of use", "Model support", "Hardware", "Licence")
        },
    }


def read(bank: Path = BANK) -> tuple[Question, ...]:
    """The whole bank, topic by topic. Raises `ValueError` for an entry that is not a question, by its id."""
    held = tomllib.loads(bank.read_text(encoding="utf-8"))
    known, chapters = values(), held["topics"]
    questions = tuple(_question(entry, chapters, known) for entry in held["questions"])
    ids = [question.id for question in questions]
    if twice := {id for id in ids if ids.count(id) > 1}:
        raise ValueError(f"these ids stand twice in {bank.name}: {', '.join(sorted(twice))}")
    topics = list(chapters)
    return tuple(sorted(questions, key=lambda question: topics.index(question.topic)))


def _question(entry: dict, chapters: Mapping[str, str], known: Mapping[str, float | str]) -> Question:
    entry = dict(entry)
    try:
        right, wrong, today = entry.pop("right"), entry.pop("wrong"), entry.pop("today", ())
        entry |= {"facts": tuple(entry["facts"]), "ask": _filled(entry["ask"], known)}
        entry.setdefault("chapter", chapters[entry["topic"]])
        number = entry["kind"] == "number"
        options = [_option(*pair, True, number, known) for pair in right]
        options += [_option(*pair, False, number, known) for pair in wrong]
        if not number:
            # An order that looks like none, and stays when the bank grows.
            options.sort(key=lambda option: hashlib.sha256(f"{entry['id']} {option.text}".encode()).digest())
        return Question(**entry, options=tuple(options), today=tuple(_today(*each) for each in today))
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
        raise ValueError(f"question {entry.get('id', '')!r}: {what}") from None


def _option(text: str, why: str, right: bool, number: bool, known: Mapping[str, float | str]) -> Option:
    if number and not PLACE.fullmatch(text):
        raise ValueError(f"the number {text!r} is typed; name a value of the library")
    shown = _filled(text, known)
    return Option(shown, _filled(why, known), right, float(shown.replace(",", "")) if number else None)


def _filled(text: str, known: Mapping[str, float | str]) -> str:
    """`text` with the library's values in their places."""
    return PLACE.sub(lambda found: format(known[found[1]], found[2] or ""), text)


def _today(engine: str, what: str) -> str:
    """What has changed about a flag or a topic of an engine, as a sentence with its date and source."""
    if what.startswith("--"):
        dialect = next(dialect for dialect in flags.DIALECTS if dialect.engine == engine)
        fact = dialect.fact(what)
        subject = f"`{what}`" if fact.name == what else f"`{what}`, now `{fact.name}`"
        changed, source = fact.changed, f"{engine} {dialect.version}"
    else:
        claim = next(each for each in engines.ENGINES if each.name == engine).claim(what)
        subject, changed, source = f"{engine}, {what[0].lower()}{what[1:]}", claim.today, claim.source
    if not changed:
        raise ValueError(f"nothing has changed about {what} of {engine}")
    return f"On {engines.READ}: {subject}. {changed[0].upper()}{changed[1:].rstrip('.')}. ({source})"
