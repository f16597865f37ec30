"""What the supervisor is told about a server, and what it reports back."""

from pydantic import BaseModel, ConfigDict

from memsluice.devstack.processes import ProcessId


class Service(BaseModel):
    """One server to run. ``environment`` replaces the caller's: a server sees nothing it was not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    log: str
    grace_s: float
    """Seconds between SIGTERM and SIGKILL."""
    stop_when_full: bool = False
    """Stopped in good order before the disk is full, and started again once there is room."""
    closes_below_share: float = 0.0
    """The free share of the disk below which it closes its data to writes, until it is started anew; 0: never."""
    opens_from_share: float = 0.0
    """The free share from which on starting it anew is of use."""


class StackPlan(BaseModel):
    """What the starter hands to the supervisor, in the order of starting; stopped in reverse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_file: str
    services: tuple[Service, ...]


class ServiceReport(BaseModel):
    """One server as the supervisor sees it."""

    model_config = ConfigDict(extra="forbid")

    state: str
    """starting | running | restarting | waiting for room | failed | stopped"""
    pid: int = 0
    started_s: float = 0.0
    boot: str = ""
    restarts: int = 0
    exit_code: int | None = None
    """Of the last process that ended; negative is the signal's number."""
    why: str = ""
    """Why the last process ended, in words that quote its log; what others made the server log may be in it."""

    def identity(self) -> ProcessId | None:
        """Return the process behind the report, or None where there is none."""
        return ProcessId(self.pid, self.started_s, self.boot) if self.pid else None


class StackReport(BaseModel):
    """The supervisor's run file."""

    model_config = ConfigDict(extra="forbid")

    pid: int
    started_s: float
    boot: str = ""
    kept: bool = False
    """Whether all servers have answered, so that they stay; one that is silent then is not about to start."""
    services: dict[str, ServiceReport]

    def identity(self) -> ProcessId:
        """Return the supervisor's own process."""
        return ProcessId(self.pid, self.started_s, self.boot)
