"""The engines compared, as data: what the lesson claims, what differs today, and its source. (Chapters 1 to 6.)

The lesson was written after vLLM Omni and SGLang Diffusion came out in late 2025. "Today" is `READ`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .table import Table

READ = "1 December 2026"


@dataclass(frozen=True)
class Claim:
    """One statement about one engine.

    topic   what it is about: "Hardware", "Ease of use", …
    lesson  what the lesson says
    today   what differs on the day of `READ`, or "" where nothing does
    source  where the difference was read, or "" without one
    """

    topic: str
    lesson: str
    today: str = ""
    source: str = ""

    def __post_init__(self):
        if bool(self.today) != bool(self.source):
            raise ValueError(f"{self.topic}: what differs today needs a source, and a source something that differs")


@dataclass(frozen=True)
class Engine:
    """One engine: its claims, and the lesson's "use it when" list."""

    name: str
    claims: tuple[Claim, ...]
    use_when: tuple[str, ...]

    def claim(self, topic: str) -> Claim:
        """The claim about `topic`; `ValueError` if there is none."""
        for claim in self.claims:
            if claim.topic == topic:
                return claim
        raise ValueError(f"topic must be one of {', '.join(c.topic for c in self.claims)}, not {topic!r}")


_LICENCE = Claim("Licence", "Apache 2.0")

VLLM = Engine(
    "vLLM",
    (
        Claim("Performance", "good"),
        Claim("Ease of use", "straightforward"),
        Claim("Model support", "most"),
        Claim("Hardware", "NVIDIA, AMD and Intel GPUs, Google TPUs"),
        _LICENCE,
        Claim("First release", "summer 2023"),
        Claim(
            "Origin",
            "UC Berkeley; hosted by The PyTorch Project in The Linux Foundation",
            "with the PyTorch Foundation since May 2025",
            "PyTorch Foundation announcement, May 2025",
        ),
        Claim(
            "Images and video", "through vLLM Omni, since late 2025", "`vllm serve MODEL --omni`", "vllm-omni 0.30.0"
        ),
        Claim("Launch", "`vllm serve`"),
    ),
    (
        "You want a model server quickly, with solid performance, for almost any open model.",
        "You want to run an Omni model with several input and output modalities.",
        "You have a smaller GPU or an older architecture, where TensorRT-LLM gains little.",
    ),
)

SGLANG = Engine(
    "SGLang",
    (
        Claim("Performance", "good"),
        Claim("Ease of use", "straightforward"),
        Claim("Model support", "most"),
        Claim(
            "Hardware",
            "NVIDIA and AMD GPUs",
            "also Intel GPUs, CPUs and Ascend NPUs; Google TPUs by a sister project, SGLang-JAX",
            "SGLang documentation, hardware platforms, December 2026",
        ),
        _LICENCE,
        Claim("First release", "December 2023"),
        Claim("Origin", "a community, grown with Chinese open models; xAI's engine of choice"),
        Claim(
            "Images and video",
            "through SGLang Diffusion, since late 2025",
            "`sglang serve` and `sglang generate`",
            "sglang[diffusion] 0.5.23",
        ),
        Claim(
            "Launch",
            "`python3 -m sglang.launch_server`",
            "still runs, but warns and recommends `sglang serve`",
            "SGLang 0.5.23",
        ),
    ),
    (
        "You want excellent throughput and decent latency out of the box on large MoE models like DeepSeek and Kimi.",
        "You want the engine experience for image and video generation.",
        "You want control and customization, and to take part in the SGLang community.",
    ),
)

TENSORRT_LLM = Engine(
    "TensorRT-LLM",
    (
        Claim("Performance", "best"),
        Claim("Ease of use", "hard"),
        Claim("Model support", "some"),
        Claim("Hardware", "NVIDIA GPUs only"),
        _LICENCE,
        Claim(
            "First release",
            "V0 built on TensorRT; V1, on PyTorch, in the summer of 2025",
            "releases 1.0 to 1.2 carry both back ends; 1.3.0rc20 (June 2026) is the last with TensorRT engines",
            "TensorRT-LLM release notes",
        ),
        Claim("Origin", "NVIDIA"),
        Claim(
            "Images and video",
            "none: use TensorRT or PyTorch directly",
            "from 1.3 (2026) in beta: FLUX, Wan, LTX-2, Qwen-Image, Cosmos",
            "TensorRT-LLM pull request 11462",
        ),
        Claim("Launch", "`trtllm-serve` with a `config.yaml`"),
    ),
    (
        "You run a well-supported architecture on a Hopper or newer GPU.",
        "You accept extra engineering in return for the best performance.",
        "Optionally: you will serve with NVIDIA Dynamo and want the most closely integrated engine.",
    ),
)

ENGINES = (VLLM, SGLANG, TENSORRT_LLM)


def compare(*topics: str, transpose: bool = False) -> Table:
    """The lesson's claims about `topics` (all by default): a row for each topic, or for each engine if `transpose`."""
    topics = topics or tuple(claim.topic for claim in VLLM.claims)
    if transpose:
        rows = ((f"**{engine.name}**", *(engine.claim(topic).lesson for topic in topics)) for engine in ENGINES)
        return Table(("", *topics), tuple(rows))
    rows = ((f"**{topic}**", *(engine.claim(topic).lesson for engine in ENGINES)) for topic in topics)
    return Table(("", *(engine.name for engine in ENGINES)), tuple(rows))


def changes() -> Table:
    """What differs today from the lesson, with the source: one row a claim."""
    rows = (
        (f"{engine.name}: {claim.topic.lower()}", claim.today, claim.source)
        for engine in ENGINES
        for claim in engine.claims
        if claim.today
    )
    return Table(("What", "Today", "Source"), tuple(rows))
