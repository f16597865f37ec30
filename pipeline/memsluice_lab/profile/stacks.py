"""Sampled stacks, in the folded format of flame graphs: read, weighed by processor time, summed by function and layer.

A sampler sees which threads are ready to run, not which of them have a core: threads that were just woken, and wait for
one, too. And it sees no thread that never ran Python. So the samples of a thread that are no waiting share what the
kernel says that this thread has used.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memsluice.errors import StackError
from memsluice_lab.profile.processes import ThreadTime

PRODUCTS, ENCODER = "encoder: linear layers", "encoder: all else"
SIGNING, DECIDE, STATE = "serialisation, signatures", "decide (all of gate/)", "state rows"
KAFKA, RUNTIME, STORE = "Kafka client (aiokafka, Faust)", "our runtime (batches, lanes, fence)", "Weaviate client"
STAGES, TELEMETRY, REST = "stages", "logs and telemetry", "event loop, interpreter, the rest"
WAKING = "threads that only wake up and wait"
BEGINNING = "a thread that begins, or ends"
"""The one frame of a thread that was looked at outside of all functions."""
_PATHS = (
    (PRODUCTS, r"<lambda> \(.*memsluice/encoder/kernels"),
    (ENCODER, r"memsluice/encoder/|[(/](tokenizers|torch)/(?!_ops\.py)[^)]*\.py"),
    (SIGNING, r"memsluice/(envelope|events|keystore)/"),
    (SIGNING, r"[(/](orjson|msgspec|cryptography|pydantic\w*|cloudevents|json|hashlib|hmac|base64)\b"),
    (STATE, r"memsluice/(gate/state/|runtimes/kafka/(state|stateful|restore)\.py)|[(/]rocksdict|^native thread rocks"),
    (STORE, r"memsluice/stores/|[(/](weaviate|grpc|httpx|httpcore|google)/|^native thread (grpc|event_engine|lifegu)"),
    (TELEMETRY, r"memsluice/(telemetry/|log\.py)|[(/](opentelemetry|prometheus_client|structlog|logging)/"),
    (DECIDE, r"memsluice/gate/"),
    (RUNTIME, r"memsluice/(runtimes|readers)/"),
    (KAFKA, r"[(/](aiokafka|faust|mode|confluent_kafka)/|^native thread rdk"),
    (STAGES, r"memsluice/stages/"),
)
_RULES = tuple((layer, re.compile(pattern)) for layer, pattern in _PATHS)
LAYERS = (PRODUCTS, ENCODER, SIGNING, DECIDE, STATE, KAFKA, RUNTIME, STORE, STAGES, TELEMETRY, REST, WAKING)
_THREAD = re.compile(r"thread \((0x[0-9A-Fa-f]+|\d+)\).*")
_WAITS = re.compile(
    r"\b(select \(selectors|wait \(threading|_worker \(concurrent/futures|channel_spin \(grpc|StageThreads\._work \()"
)
"""What the innermost function of a thread is that waits for work, or was woken and waits for a core."""
_LOOP = re.compile(r"\b(Handle\._run|_run_once) \(asyncio/")
"""What is outside of it started the event loop, and did nothing since."""


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, outermost frame first, in how many samples it was found, and in which thread."""

    thread: int | None
    frames: tuple[str, ...]
    samples: int


Weighed = Mapping[tuple[str, ...], float]
"""Stacks, outermost frame first, each with what it cost."""


def parse(text: str) -> list[Stack]:
    """Read what ``py-spy record --format raw --threads`` writes: frames, apart by ``;``, and the number of samples."""
    found = []
    for line in filter(None, text.splitlines()):
        together, _, samples = line.rpartition(" ")
        first, *frames = together.split(";")
        thread = _THREAD.fullmatch(first)
        number = None if thread is None else int(thread[1], 0)
        found.append(Stack(number, tuple(frames if thread else [first, *frames]) or (BEGINNING,), int(samples)))
    return found


def weighed(stacks: Sequence[Stack], threads: Mapping[int, ThreadTime]) -> Weighed:
    """Return each stack's processor seconds. A thread without samples is a stack of its own.

    Raises StackError where the kernel says of none of the sampled threads that it did something.
    """
    waiting = {stack for stack in stacks if _WAITS.search(stack.frames[-1])}
    working = {stack.thread for stack in stacks if stack not in waiting}
    counted = [stack for stack in stacks if stack not in waiting or stack.thread not in working]
    samples = Counter[int | None]()
    for stack in counted:
        samples[stack.thread] += stack.samples
    known = {number: one.cpu_s for number, one in threads.items() if number in samples}
    if not sum(known.values()):
        raise StackError(f"none of the {len(samples)} sampled threads is one that the kernel knows, and that worked")
    a_sample = sum(known.values()) / sum(samples[number] for number in known)
    found: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stack in counted:
        each = known[stack.thread] / samples[stack.thread] if stack.thread in known else a_sample
        found[stack.frames] += stack.samples * each  # a thread that has ended: as the others
    for number, one in threads.items():
        if number not in samples and one.cpu_s:
            found[(f"native thread {one.name}",)] += one.cpu_s
    return dict(found)


def scaled(found: Weighed, total: float) -> Weighed:
    """Return the stacks with costs that make up ``total``."""
    whole = sum(found.values())
    return {frames: total * cost / whole for frames, cost in found.items()}


def layer_of(frames: Sequence[str]) -> str:
    """Return the layer of a stack: that of the innermost frame which belongs to one."""
    if _WAITS.search("".join(frames[-1:])):
        return WAKING
    for frame in reversed(frames):
        for layer, rule in _RULES:
            if rule.search(frame):
                return layer
        if _LOOP.search(frame):
            break
    return REST


def by_layer(found: Weighed) -> dict[str, float]:
    """Return what each layer costs, all layers in their order."""
    costs = dict.fromkeys(LAYERS, 0.0)
    for frames, cost in found.items():
        costs[layer_of(frames)] += cost
    return costs


@dataclass(frozen=True, slots=True)
class Function:
    """What a function costs by itself, and with all that it calls."""

    name: str
    own: float
    whole: float


def by_function(found: Weighed) -> list[Function]:
    """Return all functions, the dearest by itself first. One that calls itself counts once in a stack."""
    own: defaultdict[str, float] = defaultdict(float)
    whole: defaultdict[str, float] = defaultdict(float)
    for frames, cost in found.items():
        own[frames[-1]] += cost
        for frame in set(frames):
            whole[frame] += cost
    return sorted((Function(name, own[name], cost) for name, cost in whole.items()), key=lambda one: -one.own)
