"""What recalls return, frameworks' adapters keep, and the console shows."""

from memsluice_lab.figures.registry.figure import Figure

READING = (
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
