"""Whether an embedded memory lost its store: its log tells what landed, and the file that has it is not there."""

from contextlib import closing

from memsluice.deployment.home import Home
from memsluice.errors import ConfigError
from memsluice.topics.names import STORE

REMEDY = (
    "restore it from a backup, or run `memsluice store rebuild --tenant TENANT` for each tenant, which writes it anew "
    "from the log"
)


def is_lost(home: Home) -> bool:
    """Whether something landed and the store's file is missing or empty. Raises ConfigError where there is no log."""
    if home.store_file.exists() and home.store_file.stat().st_size:
        return False
    with closing(home.local_log(reading=True)) as log:
        return any(log.end(STORE, partition) for partition in range(log.partitions))


def in_words(home: Home) -> str:
    """Return what is said of a lost store."""
    return f"{home.store_file} is missing or empty, though the log says what landed in it"


def check(home: Home) -> None:
    """Raise ConfigError where it is lost: a new one would be empty, and answer as if nothing had ever landed."""
    if is_lost(home):
        raise ConfigError(f"{in_words(home)}: {REMEDY}")
