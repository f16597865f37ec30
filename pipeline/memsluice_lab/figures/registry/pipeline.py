"""How fast the core, the encoder and the stages are, and that nothing is lost or decided otherwise on the way."""

from memsluice_lab.figures.registry.figure import Figure

PIPELINE = (
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
        "cores_scaling",
        "cores:cores_scaling",
        ">=",
        0.9,
        "x",
        "Landed writes a second on 2, 4 and 8 cores, as many as the machine has, over 2, 4 and 8 times those on one: "
        "the least of them. Broker, store, stages and producer are held to these cores.",
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
        "int8_cosine",
        "quantised:int8_cosine",
        "<=",
        0.999,
        "cosine",
        "Least cosine to float32's vectors of the nearest of eight int8 encoders (static scales, smoothed) that need "
        "at most 0.9 of the time of the kernel in use; 0 where none does. *seal* refuses a recall whose reader's "
        "vector has a cosine below 0.999 to its own: where int8 is nearer, the choice against it is to be made anew.",
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
)
