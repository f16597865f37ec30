"""Puts telemetry around a worker: its stages watched, its endpoint served, its spans exported."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from memsluice.clock import wall_ms
from memsluice.deployment.space import Room
from memsluice.runtimes.kafka.broker_watch import Dependency
from memsluice.runtimes.kafka.progress import StageProgress
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.telemetry import registry
from memsluice.telemetry.deferred import MANY, Later
from memsluice.telemetry.endpoint import LOOPBACK, Endpoint
from memsluice.telemetry.health import STALL_S, Health
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.spans import SERVICE
from memsluice.telemetry.stage_wrappers import ObservedBatch, ObservedStateful, Watch
from memsluice.telemetry.tracing import StageTracer, provider


class Telemetry:
    """One worker's telemetry. ``port`` None serves no endpoint, 0 any free port. Raises ConfigError for a bad one.

    With neither an endpoint nor a trace backend the stages run as they are. ``depends`` returns what the worker depends
    on, as it is known when readiness is asked.
    """

    def __init__(
        self,
        specs: Sequence[StageSpec],
        *,
        instance: str,
        host: str = LOOPBACK,
        port: int | None = None,
        tenants_max: int = 0,
        stall_s: float = STALL_S,
        depends: Callable[[], Sequence[Dependency]] = tuple,
    ) -> None:
        self.meters = Meters(tenants_max)
        self._provider = provider(SERVICE, instance, self._lost)
        watched = port is not None or self._provider is not None
        self._later = Later(MANY if watched else 1)
        self.specs = [replace(spec, stage=self._watched(spec)) if watched else spec for spec in specs]
        self.endpoint: Endpoint | None = None
        if port is not None:
            health = Health([spec.name for spec in specs], monotonic(), stall_s=stall_s, depends=depends)
            self.endpoint = Endpoint(self.meters, health, host=host, port=port, now_ms=wall_ms, catch_up=self.catch_up)

    def report(self, stages: Sequence[StageProgress]) -> None:
        """Take in a worker's progress (its ``on_progress``)."""
        if self.endpoint is not None:
            self.endpoint.report(stages)

    def room(self, room: Room) -> None:
        """Take in how much room the worker's disk has."""
        self.meters.set(registry.DISK_FREE, room.free)
        self.meters.set(registry.DISK_FREE_SHARE, room.share)

    def catch_up(self) -> None:
        """Make metrics and spans of all that the stages did until now."""
        self._later.do()

    def close(self) -> None:
        """Export what is left, within a bound, and serve no more."""
        self._later.close()
        if self._provider is not None:
            from memsluice.telemetry.exporting import close

            close(self._provider)
        if self.endpoint is not None:
            self.endpoint.close()

    def _lost(self, why: str, spans: int) -> None:
        self.meters.add(registry.SPANS_LOST, why, amount=spans)

    def _watched(self, spec: StageSpec) -> Callable[[], Stage]:
        tracer = None
        if self._provider is not None:
            tracer = StageTracer(spec.name, spec.app_id, self._provider)
        watch = Watch(spec.name, self.meters, tracer, later=self._later)

        def make() -> Stage:
            stage = spec.make()
            return ObservedStateful(stage, watch) if spec.kind == "stateful" else ObservedBatch(stage, watch)  # type: ignore[arg-type]

        return make
