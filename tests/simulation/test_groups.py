"""Who is dealt which partitions: as the stages' own consumer has it."""

import random
from collections import Counter

from memsluice_lab.simulation.groups import Group
from memsluice_lab.simulation.loop import Clock
from memsluice_lab.simulation.planted import bug
from memsluice_lab.simulation.specs import spec_of
from memsluice_lab.simulation.world import PARTITIONS


class Member:
    """Notes what it is dealt."""

    group = None
    owned = ()

    def order(self, partitions) -> None:
        """Be told by the coordinator."""
        self.owned = partitions


def dealt(number: int) -> list[Member]:
    """Return so many members of *seal*'s group, which has begun."""
    group = Group(spec_of("seal"), PARTITIONS, Clock(), random.Random(1))
    members = [Member() for _ in range(number)]
    for member in members:
        group.join(member)
    assert group.settle()
    return members


def owners(members: list[Member]) -> Counter[int]:
    """Return how many members have something of a partition, of whatever topic."""
    return Counter(number for member in members for number in {number for _, number in member.owned})


def test_a_partition_of_all_topics_is_one_member_s() -> None:
    """However many there are, each topic's partition is dealt once, and all topics' to the same member."""
    for number in (1, 2, 3, 5):
        members = dealt(number)
        everything = sorted((topic, number) for topic in spec_of("seal").inputs for number in range(PARTITIONS))
        assert sorted(tp for member in members for tp in member.owned) == everything
        assert owners(members) == Counter(range(PARTITIONS))


def test_what_faust_chooses_by_itself_gives_a_partition_to_several() -> None:
    """The planted bug is what the runtime departs from: three members then share each partition's fence."""
    with bug("round robin"):
        members = dealt(3)
    assert sorted(len(member.owned) for member in members) == [2, 2, 2]
    assert min(owners(members).values()) > 1
