"""Judge some objects and take the nearest, as a recall does once it has searched."""

from collections.abc import Iterable

from memsluice.envelope.keys import Keyring
from memsluice.recall.reader import RecallQuery, Selection, judge
from memsluice.recall.wanted import Nearest
from memsluice.stores.base import StoredObject


def select(items: Iterable[StoredObject], asked: RecallQuery, k: int, keyring: Keyring) -> Selection:
    """Return what a recall of ``k`` takes of these objects."""
    return Nearest(k).of([(item.object_id, judge(item, asked, keyring)) for item in items])
