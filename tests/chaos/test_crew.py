"""Three workers of one stage share its partitions, on the real stack."""

from uuid import uuid4

import pytest

from memsluice.topics import names
from memsluice_lab.chaos.following import members, wait
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.stages import everything, staffed
from memsluice_lab.figures.bed import Bed

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2_400)]

TRIES = 3


def test_a_partition_of_all_topics_is_one_worker_s(bed: Bed) -> None:
    """*seal* reads three topics. Three workers have each partition once, of all topics; under load none shuts another
    out, and everything is decided."""
    with staffed(bed, Nemesis(bed), f"w{uuid4().hex[:6]}", 1, {}) as made:
        crew = [made.owners["seal"], *(made.settled(one) for one in [made.join("seal"), made.join("seal")])]
        shares: dict[str, set[int]] = {}

        def all_there() -> bool:
            shares.clear()
            shares.update(members(bed, names.GROUPS["seal"]))
            return set(shares) == {one.replica for one in crew}

        assert wait(all_there, 600)
        assert sorted(number for share in shares.values() for number in share) == list(range(names.PARTITIONS))

        def begun() -> list[int]:
            return [one.log.read_text().count("begins anew") for one in crew]

        shut_out = []
        for _ in range(TRIES):  # one that stood still for its whole session is shut out rightly
            before = begun()
            made.before()
            made.after()
            assert everything(made, 600)
            shut_out.append(begun() != before)
            if not shut_out[-1]:
                break
        assert not shut_out[-1], shut_out
        assert made.scene.ended == {}
