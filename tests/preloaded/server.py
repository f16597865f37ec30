"""Forks processes that run ``memsluice``, or another Python program, from one that has imported it all: the program is
the same, its start is not five to ten seconds of a processor each time.

    python -m tests.preloaded.server SOCKET

That a process of its own starts, and imports no more than it needs, is what tests/cli and tests/gate are for.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from tests.preloaded.client import COMMAND

MODULES = (
    "memsluice.cli.recall",
    "memsluice.cli.work",
    "memsluice.encoder.loop",
    "memsluice.operations.doctor.preflight",
    "memsluice.runtimes.assembly",
    "memsluice.runtimes.kafka.worker",
    "memsluice.stages.screen",
    "memsluice.telemetry.surroundings",
    "memsluice.telemetry.worker_telemetry",
    "weaviate",
)


def main(path: str) -> None:
    """Serve until the parent ends, which holds the other end of standard input. Returns in the children."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the product sets it, and before torch is imported
    for name in MODULES:
        importlib.import_module(name)
    assert threading.active_count() == 1, f"threads do not survive a fork: {threading.enumerate()}"
    gc.freeze()  # a collection in a child would write to, and so copy, all that was imported
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print("ready", flush=True)
    while True:
        if sys.stdin in select.select([server, sys.stdin], [], [])[0]:
            os._exit(0)  # nothing to tidy up, and seconds of it
        asked, _ = server.accept()
        if os.fork() == 0:
            server.close()
            _minded(asked)
            return
        asked.close()


def _minded(asked: socket.socket) -> None:
    """Fork the process itself, tell its number and then its end; return in the process itself."""
    head, ancillary, _, _ = asked.recvmsg(4, socket.CMSG_SPACE(3 * 4))
    descriptors = [int.from_bytes(ancillary[0][2][at : at + 4], sys.byteorder) for at in (0, 4, 8)]
    length, said = int.from_bytes(head, "big"), b""
    while len(said) < length:
        said += asked.recv(length - len(said))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if (pid := os.fork()) == 0:
        asked.close()
        _become(json.loads(said), descriptors)
        return
    for one in (0, 1, 2, *descriptors):  # who reads what the process writes sees its end
        os.close(one)
    asked.sendall(pid.to_bytes(4, "big"))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    asked.sendall(code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(asked: dict[str, object], descriptors: list[int]) -> None:
    for place, one in enumerate(descriptors):
        os.dup2(one, place)
        os.close(one)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[arg-type]
    words = asked["words"]
    assert isinstance(words, list)
    sys.argv = [str(asked["program"]), *words]


def _end(code: object) -> NoReturn:
    """End as Python does, but for taking down its modules: to write to what the fork shares copies it, for seconds."""
    threading._shutdown()
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    main(sys.argv[1])
    from memsluice.cli import run

    try:
        if sys.argv[0] == COMMAND:
            run()
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        _end(ended.code)
    _end(0)
