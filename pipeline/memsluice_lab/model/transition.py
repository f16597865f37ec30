"""S --a--> S': one event of any kind."""

from memsluice_lab.model import rules
from memsluice_lab.model.actions import Event, Observe, Order, Read, Write
from memsluice_lab.model.commands import order
from memsluice_lab.model.rules import DUPLICATE, REJECT, Verdict
from memsluice_lab.model.state import EVENT_ID_MS, ModelState


def step(state: ModelState, event: Event) -> Verdict:
    """Do one transition. An event id that was seen is the same event again, or another one that takes its id.

    What was refused may be read in part alone, and is never known to be the same: what it saw counts each time.
    """
    state.number += 1
    first = _first(state, event.id)
    if event.id not in state.events or not state.alive(state.events[event.id][1]):
        state.events[event.id] = (event, state.now + EVENT_ID_MS)
    refused = isinstance(event, Read | Observe) and event.refused
    if first == event and not refused:
        return Verdict(DUPLICATE)
    if isinstance(event, Write):
        return rules.write(state, event, repeated=first is not None)
    if isinstance(event, Order):
        return Verdict(REJECT) if first is not None else order(state, event)
    return rules.seen(state, event, repeated=first is not None)


def _first(state: ModelState, event_id: str) -> Event | None:
    """Return the event that an id stands for: within a window, and as long as an entry of that id is known."""
    seen = state.events.get(event_id)
    if seen is not None and state.alive(seen[1]):
        return seen[0]
    lineage = state.lineage(event_id)
    return None if lineage is None else lineage.event
