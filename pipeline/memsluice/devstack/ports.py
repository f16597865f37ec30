"""Free loopback ports."""

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


def pick(names: Sequence[str], previous: Mapping[str, int]) -> dict[str, int]:
    """Return a free TCP port for each name, keeping the previous one where it is still free.

    All are probed while all are held, so they are distinct. Another process may still take one between this
    call and the server's own bind: the start then fails with the server's message and can be repeated.
    """
    chosen: dict[str, int] = {}
    with ExitStack() as held:
        for name in names:
            wanted = previous.get(name, 0)
            probe = _bind(wanted) or _bind(0)
            if probe is None:
                raise OSError("there is no free port on 127.0.0.1")
            held.enter_context(probe)
            chosen[name] = int(probe.getsockname()[1])
    return chosen


def _bind(port: int) -> socket.socket | None:
    """Bind ``port`` (0: any) on every interface, since some of the servers listen on all of them."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("0.0.0.0", port))  # noqa: S104 - never listens; a port taken on any interface counts as taken
    except OSError:
        probe.close()
        return None
    return probe
