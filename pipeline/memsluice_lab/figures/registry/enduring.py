"""What hostile input, dead and hanging processes, outages and noisy tenants do to it."""

from memsluice_lab.figures.registry.figure import Figure

ENDURING = (
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
)
