"""Calibration: how a tenant's detector scored writes over time, drawn on the server, and the same in words."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console import fields
from memsluice.console.asking import serving, visitor
from memsluice.console.charts import drawn
from memsluice.console.menu import Item
from memsluice.console.pages.audit import check_tenant, known_tenants
from memsluice.console.rendering import page
from memsluice.errors import InvalidArgument
from memsluice.events.partition import partition_of
from memsluice.operations.monitor import calibration_view as view
from memsluice.operations.monitor.calibration import Detector, History
from memsluice.topics.names import PARTITIONS

LAST, LAST_MAX = 300, 2_000
READ_MAX = 50_000
"""Records of the tenant's partition that are gone through: the newest. The command goes through all of them."""
ROWS_MAX = 100
"""Writes that are listed beside the chart: the latest."""


def show(request: Request) -> Response:
    """Show the chart of the tenant that the address names."""
    who, told, given = visitor(request), serving(request), fields.asked(request)
    tenants = known_tenants(who)
    tenant = fields.text(given, "tenant") or (tenants[0] if len(tenants) == 1 else None)
    last = fields.number(given, "last", 1, LAST_MAX, LAST)
    detector = _detector(fields.text(given, "detector"))
    if tenant is None:
        return page(request, "calibration.html", tenants=tenants, tenant="", detector=detector, last=last, shown=None)
    check_tenant(who, tenant)
    with told.heavy(), told.desk() as desk:
        history, where = History(tenant, desk.keys.keyring()), desk.audit.name
        partition = partition_of(tenant, PARTITIONS)
        first = max(0, desk.audit.end(partition) - READ_MAX)
        for record in desk.audit.read(partition, first):
            history.take(record)
    chosen = detector or history.deciding
    shown = None if chosen is None or chosen not in history.points else _shown(history, chosen, last)
    return page(
        request, "calibration.html", tenants=tenants, tenant=tenant, detector=detector, last=last, shown=shown,
        history=history, where=where,
        read_max=READ_MAX if first else None,
    )  # fmt: skip


def _detector(name: str | None) -> Detector | None:
    if name == "default" or name == "memsad":
        return "default" if name == "default" else "memsad"
    if name is not None:
        raise InvalidArgument("detector: write default or memsad, or leave it out for the one whose score decides")
    return None


def _shown(history: History, detector: Detector, last: int) -> dict[str, object]:
    """Return what the page says of a chart, and the chart."""
    points, (phase, meaning) = view.recent(history, detector, last), view.phase_told(history, detector, last)
    line, above = view.line_told(history, detector, last), view.above_told(history, detector, last)
    said = f"{phase}: {meaning}. Line: {line}. {above}. {view.period_told(points)}."
    return {
        "detector": view.detector_named(detector), "strategy": points[-1].strategy, "phase": phase, "meaning": meaning,
        "line": line, "above": above, "period": view.period_told(points), "ranked": points[-1].ranked,
        "other_scale": view.OTHER_SCALE if view.scale_changed(history, detector, last) else "",
        "changes": list(history.changes[detector])[-view.CHANGES_SHOWN:], "scored": history.totals[detector],
        "points": points[-ROWS_MAX:][::-1], "chart": drawn(view.picture(history, detector, last), said),
    }  # fmt: skip


MENU = (Item("Calibration", "/calibration", 50),)
ROUTES = (Route("/calibration", show, methods=["GET"]),)
