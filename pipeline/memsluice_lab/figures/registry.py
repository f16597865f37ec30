"""Every figure that the project states about itself: its name, what must hold, and the function that measures it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memsluice.errors import ConfigError

Say = Callable[[str], None]
Relation = Literal[">=", "<=", "=="]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a measurement is given: where the real records are (None: nobody said), and whom to tell what goes on.

    Whom to tell is no part of what is measured: figures that come of one run share it, whoever is told.
    """

    data: Path | None
    say: Say = field(compare=False)

    def records(self) -> Path:
        """Return the folder with ``data/`` and ``bench/``. Raises ConfigError, which says what is expected there."""
        if self.data is None:
            raise ConfigError(
                "This is measured on real records: name a folder with data/ and bench/build_streams.py by "
                "--data FOLDER or MEMSLUICE_DATA"
            )
        for part in ("data", "bench/build_streams.py"):
            if not (self.data / part).exists():
                raise ConfigError(f"There is no {part} in {self.data}, which --data or MEMSLUICE_DATA names")
        return self.data


@dataclass(frozen=True, slots=True)
class Measured:
    """One result: the figure, and the rows (what, how much) from which a person sees how it came about."""

    value: float
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Figure:
    """One entry of the registry. ``where`` is ``module:function`` below this package, imported when it is measured.

    ``together`` names a run that measures several figures at once: asked for together, they share it. What is not
    ``recorded`` is worked out anew wherever it is shown.
    """

    name: str
    where: str
    relation: Relation
    goal: float
    unit: str
    meaning: str
    together: str = ""
    recorded: bool = True

    def holds(self, value: float) -> bool:
        """Tell whether a value reaches the goal."""
        return {">=": value >= self.goal, "<=": value <= self.goal, "==": value == self.goal}[self.relation]

    def measure(self, setting: Setting) -> Measured:
        """Measure it. Takes minutes for those that need the real stack."""
        module, _, name = self.where.partition(":")
        function: Callable[[Setting], Measured] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        return function(setting)


_ALL = (
    Figure(
        "core_decisions_per_s",
        "core:core_decisions_per_s",
        ">=",
        3_000,
        "writes/s",
        "Writes that the pure gate decides in a second of one core, state rows as bytes included, under the policy "
        "that ships: the default detector decides, MEMSAD is reported beside it, with its history and window full; no "
        "encoder.",
    ),
    Figure(
        "memsad_speedup",
        "calibrating:memsad_speedup",
        ">=",
        1,
        "x",
        "CPU time of seed 000's Algorithm 1 in vectorised NumPy, one write at a time or in batches, whichever is "
        "faster, over ours, for the same scores and verdicts of every write of the real streams, on one thread, taking "
        "turns. The goal is to be no slower, although ours writes state rows too and says what the theorems guarantee.",
    ),
    Figure(
        "calibration_kib",
        "calibrating:calibration_kib",
        "<=",
        64,
        "KiB",
        "Calibration state of one tenant, keys included, of the detector that decides and the one reported beside it: "
        "the state rows that the real streams leave.",
    ),
    Figure(
        "changelog_bytes_per_event",
        "core:changelog_bytes_per_event",
        "<=",
        3_000,
        "bytes",
        "State that one event writes to the changelog, keys included: the mean over all real streams.",
    ),
    Figure(
        "encoder_ratio",
        "encoding:encoder_ratio",
        ">=",
        4,
        "x",
        "Texts a second of our encoder over SentenceTransformer.encode(batch_size=64), on the same real texts of "
        "mixed length.",
    ),
    Figure(
        "runtime_parity",
        "accounted:runtime_parity",
        "==",
        1,
        "",
        "1 if the embedded runtime, given the sealed records of a run on the real stack, writes the very same verdict "
        "bytes.",
    ),
    Figure(
        "real_stack_accounted",
        "accounted:real_stack_accounted",
        "==",
        1,
        "",
        "1 if every write of every real stream, sent through Kafka, Faust and Weaviate, landed, is contained, held or "
        "refused, with equal counts in the audit, the store, the quarantine and the dead letters, and recalls return "
        "verified entries only.",
    ),
    Figure(
        "kill9_lost",
        "killing:kill9_lost",
        "==",
        0,
        "events",
        "Events lost over a kill -9 under load at each of the eight named points that seal, screen and land pass "
        "before a commit, and 20 at random moments, of each stage alone and of all at once equally often.",
        together="kill9",
    ),
    Figure(
        "kill9_doubled",
        "killing:kill9_doubled",
        "==",
        0,
        "objects",
        "Objects doubled, and verdicts contradicting another, over the same kills.",
        together="kill9",
    ),
    Figure(
        "ingest_ratio",
        "ingest:ingest_ratio",
        ">=",
        3,
        "x",
        "Landed writes a second, guarded over a plain script (same topic, encode(batch_size=64), same Weaviate, no "
        "gate). Most of it is the encoder: gate_price is what the gate costs.",
    ),
    Figure(
        "gate_price",
        "ingest:gate_price",
        ">=",
        0.75,
        "x",
        "Landed writes a second, guarded over the same plain script with the gate's own encoder: the share of its "
        "throughput that a script keeps which begins to sign, screen and audit.",
    ),
    Figure(
        "cores_busy",
        "cores:cores_busy",
        ">=",
        0.9,
        "of the cores' time",
        "Share of the cores' time that the stages, the broker, the store and the producer use at saturation: what is "
        "missing waits while work does.",
    ),
    Figure(
        "encoder_of_limit",
        "encoder_limit:encoder_of_limit",
        ">=",
        0.85,
        "of the time",
        "Share of the encoder's time, on real texts of mixed length and with their wording read, that the products of "
        "its linear layers would take by the machine's best kernel for each shape: 1 is the limit. Read as *seal* "
        "reads, a batch in each of its threads, of one core each; the products by these cores together at one, or by "
        "each at one of its own, what is faster.",
    ),
    Figure(
        "light_extra_ms",
        "ingest:light_extra_ms",
        "<=",
        20,
        "ms",
        "Median time from produce to insert acknowledged under light load, guarded minus the plain script.",
    ),
    Figure(
        "telemetry_cost",
        "telemetry:telemetry_cost",
        "<=",
        4,
        "%",
        "Share of saturated throughput that spans and metrics cost, side by side with a run without them: the upper "
        "end of the 90 % interval of the rounds' median.",
    ),
    Figure(
        "tenants_series",
        "tenants:tenants_series",
        "<=",
        1_000,
        "series",
        "Metric series of one worker after a simulated day of 1,000 tenants, 100 of them with a label of their own.",
    ),
    Figure(
        "tenants_memory_mib",
        "tenants:tenants_memory_mib",
        "<=",
        256,
        "MiB",
        "Growth of a *screen* worker's resident memory over the whole of such a day, from before its first event, in "
        "the default configuration (no tenant has a label of its own), RocksDB included.",
    ),
    Figure(
        "replay_ratio",
        "replaying:replay_ratio",
        ">=",
        0.8,
        "x",
        "Replays of held writes that *screen* decides in a second over first decisions of the same writes with the "
        "same outcome, both from a sealed backlog on the real stack, detectors on: the lower ratio of held and let in. "
        "Before, a replay of all 10,000 is killed ten times, resumed, and decides each once and in order.",
    ),
    Figure(
        "unread_replays",
        "unread:unread_replays",
        "==",
        0,
        "replays",
        "Of 1,000 replays of held injections, after the calibration of the detector that held them moved under the "
        "same policy, those that let one in which no run had shown to a person: embedded runtime, the real core and "
        "encoder, random sequences, half of the replays under MEMSAD and half under the default detector.",
    ),
    Figure(
        "malformed_preserved",
        "malformed:malformed_preserved",
        "==",
        1,
        "",
        "1 if each of 10,000 malformed messages mixed into the stream is a dead letter with its bytes intact, or, "
        "beyond what is kept of a sender in a day, a note with their digest, and all else lands.",
    ),
    Figure(
        "model_disagreements",
        "modelled:model_disagreements",
        "==",
        0,
        "sequences",
        "Of 100,000 random sequences of actions, those at any step of which the production core and the reference "
        "model of seed 001's rules say different things, or Theorem 1 fails.",
    ),
    Figure(
        "provenance_through",
        "provenance:provenance_through",
        "==",
        0,
        "attempts",
        "Attempts that reach guidance on the real stack: seven attack vectors from every untrusted source, 199 "
        "injection payloads as writes of each, 2,450 pairs of 50 concurrent sessions, 200 writes that declare a "
        "tainted parent; and the labelled streams' direct and laundered attacks.",
    ),
    Figure(
        "lineage_us",
        "lineage:lineage_us",
        "<=",
        50,
        "µs",
        "CPU time that the lineage of one write takes at 1,000,000 known entries of its tenant: session, two parents, "
        "their maximum, from the store that the workers use.",
    ),
    Figure(
        "lineage_bytes_per_entry",
        "lineage:lineage_bytes_per_entry",
        "<=",
        1_024,
        "bytes",
        "Growth of the state for one more known entry: its lineage row as it goes to the changelog, mean of a million.",
    ),
    Figure(
        "overtaint_rate",
        "overtaint:overtaint_rate",
        "<=",
        3,
        "%",
        "Share of the honest writes of users and agents in the conversation streams that lose their place in guidance "
        "by taint, for whatever reason, under session taint, the default. Rows have the other scopes.",
    ),
    Figure(
        "decision_us",
        "deciding:decision_us",
        "<=",
        300,
        "µs",
        "CPU time of a whole decision and of its rows' bytes, encoder apart, at 1,000 kept questions and 1,000 entries "
        "of real streams: the median pass, for writes or for recalls, whichever is dearer. A row has it at 10,000, "
        "where 600 are allowed, and two have what is left where no check reads a text or a vector.",
    ),
    Figure(
        "fuzzy_coverage_auroc",
        "fuzzy:fuzzy_coverage_auroc",
        "<=",
        0.6,
        "",
        "How well a fuzzy form of query coverage tells the attacks by users and agents that land in spite of the "
        "default detector from the honest writes that land (AUROC, .5: not at all): with more it would belong in.",
    ),
    Figure(
        "hard_negative_rate",
        "hard_negatives:hard_negative_rate",
        "<=",
        0.03,
        "",
        "Share of honest writes with an attack's shape that are held, in tenants of 200 landed writes and 100 recalls: "
        "the worst of e-mails, quoted questions, cached answers, preferences and a change of habit, by a user and by "
        "an agent. Rows have them all. Development figure: the wording models were fitted on these sources (the same "
        "e-mails, questions and answers), and their grammar was added to after looking at which preferences were held.",
    ),
    Figure(
        "rolling_held",
        "rolling:rolling_held",
        "<=",
        0.02,
        "",
        "Share of honest writes that MEMSAD, alone and calibrated by drift (policy published-rolling), holds after a "
        "change of topic, on the real stack. Rows have KEPT, and the same under the paper's own calibration.",
    ),
    Figure(
        "unseen_recall",
        "unseen:unseen_recall",
        ">=",
        0.9,
        "",
        "Share of hostile texts with explicit instructions that the wording rule holds at an agent's budget, of "
        "families, languages, sources and templates that its models were trained without: the mean of these kinds. "
        "Rows have them all.",
        together="unseen",
    ),
    Figure(
        "unseen_fpr",
        "unseen:unseen_fpr",
        "<=",
        0.025,
        "",
        "Share of honest texts that the same models hold at the same budget, of the families, languages, sources and "
        "templates left out with the hostile ones: the mean of these kinds. Rows have them all.",
        together="unseen",
    ),
    Figure(
        "unseen_ceiling",
        "unseen_ceiling:unseen_ceiling",
        ">=",
        0.9,
        "",
        "The most of the texts of unseen_recall that any of five kinds of heads on the encoder's frozen states holds, "
        "ours also with its n-grams, where the threshold is chosen with hindsight so that .025 of the honest texts "
        "left out are held. A head that ships takes its budget from texts it knows.",
        together="unseen",
    ),
    Figure(
        "warm_releases",
        "warm:warm_releases",
        "==",
        0,
        "injections",
        "Of 500 injections by an agent, those that are held in a tenant in which nothing landed and are not held in "
        "one of 29, 30, 200 or 1,000 landed honest writes: the real core and encoder. Development figure: injections "
        "and honest writes are of the grammar that the wording models were fitted on, so it tells what warmth changes, "
        "and not how many unknown ones are held.",
    ),
    Figure(
        "wording_us",
        "wording:wording_us",
        "<=",
        150,
        "µs",
        "CPU time that the wording signal takes of a write beyond encoding it, on one thread: its head in batches as "
        "*seal* makes them, and its n-grams, the median pass of each. A row has the size of both model files, where "
        "100 KiB are allowed.",
    ),
    Figure(
        "recall_row_bytes",
        "deciding:recall_row_bytes",
        "<=",
        2_048,
        "bytes",
        "Largest row, key included, that the default detector keeps of a past question, of all real streams.",
    ),
    Figure(
        "sdk_packages",
        "installing:sdk_packages",
        "<=",
        20,
        "packages",
        "Distributions in an empty environment into which the base wheel alone was installed, itself among them.",
    ),
    Figure(
        "sdk_modules",
        "installing:sdk_modules",
        "<=",
        250,
        "modules",
        "Modules that `from memsluice import MemoryWriter` and `MemoryWriter.open_local(tenant=...)` load in that "
        "environment, Python's own library included, beyond those of the bare interpreter.",
    ),
    Figure(
        "stale_figures",
        "stale:stale_figures",
        "==",
        0,
        "figures",
        "Figures of which no measurement is kept, on any class of machine, that was made on the code as it is now.",
        recorded=False,
    ),
    Figure(
        "cli_start_ratio",
        "cli_start:cli_start_ratio",
        "<=",
        1.5,
        "x",
        "Start of the slowest of `memsluice --help`, `quarantine list` and `trace` on a small embedded home, over "
        "`python -c 'import typer, rich, confluent_kafka'`, in turns.",
    ),
    Figure(
        "mutation_score",
        "mutants:mutation_score",
        ">=",
        0.85,
        "",
        "Share of 300 small faults, drawn with a fixed seed and planted one at a time in gate, stages and recall, for "
        "which a test that needs no stack fails.",
    ),
    Figure(
        "fence_cost",
        "fencing:fence_cost",
        "<=",
        10,
        "%",
        "Share of guarded throughput that this tree costs over the one before the fence (8d5a1a3), all that came since "
        "included: landed writes a second with the workers of either, in turn, in bursts of the same real events.",
        together="fence",
    ),
    Figure(
        "ingest_cost",
        "fencing:ingest_cost",
        "<=",
        5,
        "%",
        "Share of throughput that this tree costs over the one before the gate's signals were made anew (3120c47), all "
        "that came since included, the fence as well: the same writes of the same bursts, each decided, and landed "
        "where it was to.",
        together="fence",
    ),
    Figure(
        "fence_light_ms",
        "fencing:fence_light_ms",
        "<=",
        20,
        "ms",
        "Milliseconds by which this tree's median from produce to landed under light load, in turn, is above that of "
        "the one before the fence (8d5a1a3), all that came since included.",
        together="fence",
    ),
    Figure(
        "hostile_failures",
        "hostile:hostile_failures",
        "==",
        0,
        "inputs",
        "Of 1,000,000 malformed or hostile inputs to every decoder of what others write (intake records, envelopes, "
        "records between the stages, dead letters, what commands carry, store objects, policies, topic, key and "
        "connection files, free texts): those that raise anything outside the error tree, take more than two seconds "
        "of processor time or 768 MiB, or, of what is written again too (about half of the decoders), are accepted and "
        "not written as they were read.",
    ),
    Figure(
        "zombie_violations",
        "chaos:zombie_violations",
        "==",
        0,
        "violations",
        "Promises broken over 102 rounds on the real stack, 34 of each stage, in each of which a worker of seal, "
        "screen or land is paused for 12 to 90 s before it committed what waits for it, others take over and go on "
        "(taint, replacements, removals), and it wakes up; up to six hang at once, two of each stage, each for its "
        "own time. All is read back before and after compaction, and a worker starts from nothing.",
    ),
    Figure(
        "kill9_violations",
        "chaos:kill9_violations",
        "==",
        0,
        "violations",
        "Promises broken over 100 kill -9 of each stage with more than 100 records in flight, every fourth time "
        "started again on an empty disk; checked as zombie_violations is.",
    ),
    Figure(
        "fault_violations",
        "chaos:fault_violations",
        "==",
        0,
        "violations",
        "Promises broken over 14 faults under load on the real stack: the network between workers and store, and "
        "between workers and broker, is slow, cut, torn or silent; either server dies or hangs; workers come and go; "
        "clocks step by ten minutes. Checked as zombie_violations is.",
    ),
    Figure(
        "outage_lost",
        "chaos:outage_lost",
        "==",
        0,
        "violations",
        "Promises broken on the real stack where the store is down for five minutes and then the broker is killed, "
        "both under load and without a person. A stage that occupies more than twice what it did before, or has not "
        "caught up five minutes after, counts; the rows say what every process occupied. Checked as zombie_violations "
        "is.",
    ),
    Figure(
        "recovery_ratio",
        "starting:recovery_ratio",
        "<=",
        1.5,
        "x",
        "Time until a screen worker from empty state has its partitions and takes records, over a bare Faust worker's "
        "with the same rows in its changelog, in turns: the ratio of the medians.",
    ),
    Figure(
        "restart_ratio",
        "starting:restart_ratio",
        "<=",
        1.2,
        "x",
        "Time until a screen worker with 1,000,000 rows on its disk has its partitions and takes records, over a bare "
        "Faust worker's with as many, in turns: the ratio of the medians.",
    ),
    Figure(
        "noisy_neighbour_ratio",
        "noisy:noisy_neighbour_ratio",
        "<=",
        1.5,
        "x",
        "Neighbours' p99 from intake to landed on the real stack while one tenant writes ten times as much, over that "
        "while all write the same, at half of what the stages can, each with its fair share of that for a quota: the "
        "worse of neighbours on its partition and on others.",
    ),
    Figure(
        "simulated_violations",
        "simulated:simulated_violations",
        "==",
        0,
        "histories",
        "Of 10,000 histories of the whole pipeline under one seeded scheduler, each of 220 events and at least three "
        "faults (crashes, pauses with a takeover, rebalances, lost answers, outages, rotation, revocation, clock "
        "steps, compaction, a store that loses or refuses), those that break a promise.",
    ),
    Figure(
        "planted_found",
        "simulated:planted_found",
        "==",
        1,
        "",
        "Share of the bugs planted in stages, lanes, fence, recovery and sweep that some simulated history shows, of "
        "at most 1,000 for each.",
    ),
    Figure(
        "tampered_returned",
        "tampered:tampered_returned",
        "==",
        0,
        "objects",
        "Of 10,000 objects in a real Weaviate that were tampered with, swapped, moved, hidden, deleted, rolled back, "
        "withdrawn and returned, or never signed, each beside an honest one: those that the recall service returns or "
        "does not count by their reason, and honest ones that it does not return.",
    ),
    Figure(
        "recall_overhead",
        "overhead:recall_overhead",
        "<=",
        1.3,
        "x",
        "Median time of a verified recall of 5 entries among 100,000, without its event, over that of a plain "
        "near_vector on the same partition, in turn.",
    ),
    Figure(
        "block_escapes",
        "prompting:block_escapes",
        "==",
        0,
        "contents",
        "Of 1,000 hostile contents in prompt blocks, those that `prompt.parse` reads as anything else than what they "
        "say, that add or hide an entry, or that leave a tag of ours or of a chat template in the prompt.",
    ),
    Figure(
        "smsr_bound_violations",
        "smoothing:smsr_bound_violations",
        "==",
        0,
        "settings",
        "Of 50 random settings of a smoothed recall that draws entries and 50 that draw authors, 10,000 trials each, "
        "those in which an exact one-sided binomial test rejects the certificate, at 1 % for all of them together.",
    ),
    Figure(
        "asr_r_with_gate",
        "attacked:asr_r_with_gate",
        "<=",
        0.05,
        "",
        "Share of a victim's 100 questions for which a recall through the gate returns (k = 5) an entry of "
        "AgentPoison, MINJA or InjecMEM (seed 000): the worst of every way in that the paper's access gives a class, "
        "where the same entries reach .5 in a plain Weaviate. Real stack, a real tenant's past, questions one after "
        "another; rows have all ways in.",
    ),
    Figure(
        "repcs_auroc",
        "repcs:repcs_auroc",
        ">=",
        0.9,
        "",
        "How well seed 004's divergence tells answers from memory from answers out of the context (AUROC): 2,000 "
        "questions to each of three causal models trained afresh on self-made facts, the worst of them. Rows have the "
        "intervals, the paper's tables, the threshold's false alarms, the overhead, and how often influence evidence "
        "errs.",
    ),
    Figure(
        "adapter_attacks_through",
        "adapters:adapter_attacks_through",
        "==",
        0,
        "attacks",
        "A poisoned page, by way of a scripted agent and each framework's adapter, embedded and on the real stack: "
        "those that the person's next session follows, that no trace explains, or that do nothing without a gate.",
    ),
    Figure(
        "adapter_put_ms",
        "adapter_puts:adapter_put_ms",
        "<=",
        100,
        "ms",
        "Median of LangGraph's put through our adapter on the real stack, until what was put can be read; beside the "
        "other adapters', LangGraph's InMemoryStore, a plain Weaviate client and mem0's default store, taking turns "
        "with one encoder. Rows have the searches, and how many times as long each takes.",
    ),
    Figure(
        "adapter_lost",
        "adapter_losses:adapter_lost",
        "==",
        0,
        "puts",
        "Of 1,000 puts through each adapter, by 20 threads, while workers of seal, screen and land are killed: those "
        "that returned and a new reader cannot read, or that neither returned nor raised.",
    ),
    Figure(
        "outside_suites_passed",
        "outside:outside_suites_passed",
        ">=",
        0.95,
        "",
        "Share of the tests in frameworks' own suites that apply to our adapters which pass with them. Rows have every "
        "failure.",
    ),
    Figure(
        "desk_page_ratio",
        "desk_page:desk_page_ratio",
        "<=",
        3,
        "x",
        "Median time of the console's page of the 50 newest of 100,000 held writes, rendered and over HTTP, over that "
        "of a plain read of as many records from their topic, verified and decoded, taking turns. Rows have a plain "
        "SQL read, the index alone, a page in the middle, the page of groups, and the console's memory.",
    ),
    Figure(
        "console_escapes",
        "console_escapes:console_escapes",
        "==",
        0,
        "escapes",
        "Every page of the console in a real Chromium, at the desk and on a phone, over a home of 1,000 different "
        "hostile contents (held, landed, dead letters, names, notes, proposals, filters): scripts that ran, requests "
        "that leave, elements and links made of contents, pages wider than the window, characters that act. Rows have "
        "the pages and how often each was opened.",
    ),
    Figure(
        "desk_actions_per_100",
        "desk_actions:desk_actions_per_100",
        "<=",
        40,
        "actions",
        "Keys and clicks in one scripted session at the desk that decides 100 held writes in 12 groups by a person's "
        "rules, in a real Chromium on a real console: nothing unread, groups whose texts deserve different things one "
        "by one. Rows have the seconds, and the same decisions by `memsluice quarantine`, by group and one by one.",
    ),
)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _ALL}


def get(name: str) -> Figure:
    """Return a figure. Raises ConfigError with the names that there are."""
    if name not in FIGURES:
        raise ConfigError(f"There is no figure {name!r}; there are: {', '.join(FIGURES)}")
    return FIGURES[name]


def number(value: float) -> str:
    """Return a figure's value as it is printed: whole numbers whole, others with four significant digits."""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
