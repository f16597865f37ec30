"""The hand-written schedule: one part before the worker starts anew, one part after it, tenant by tenant.

What a step is there for stands behind it: the reason code that comes of it. Which codes and kinds of rows must come of
all of it is held against lists in the test, so that a step whose purpose is lost is found there.
"""

from tests.golden.intake import bad_input, held, outside, people
from tests.golden.orders import at_the_desk, everybody, landed, later, policies, protected, reviewed, revoked
from tests.golden.themes import (
    looked_back,
    looked_back_again,
    related,
    scored,
    scored_again,
    secrets,
    strict,
    strict_again,
    unread,
    unread_again,
    used,
    worded,
    words,
    words_again,
)
from tests.golden.town import Tenant, Town

from memsluice.gate.policy.model import parse

POLICIES = parse("""
# Two questions: a score is then a whole number of 64ths, and so is every sum of scores, on every CPU.
name: golden
content_bytes_max: 1200
writes_per_day: {user_observed: 50}
commands: {promotions_per_day: 3, declassifications_per_day: 3}
detect: {threshold: 1.0}
memsad: {history_size: 2}
tenants:
  looking: {detect: {look_back_per_day: 2, questions: 12, entries: 60, window: 60}}
  strict: {profile: strict, quarantine: {per_principal_max: 2, refused_per_principal_max: 3},
    writes_per_day: {user_observed: 5}}
  words: {taint: influence}
  whole: {sensitive: {action: hold}}
  told: {sensitive: {action: report}}
  related: {graph: {action: report, hub_links: 4, hijack_links: 3, inner_links: 2}, drift: {limit: 0.5}}
  orders: {wording: {own: 0.0005, shared: 0.2, per_tier: {operator: 0}}}
  unread: {detector: memsad, memsad: {cold_threshold: 0.25}}
  fixed: {detector: memsad, memsad: {reference_size: 4}}
  plus: {detector: memsad, memsad: {variant: memsad_plus, reference_size: 4, history_size: 3, mode: max}}
  composite: {detector: memsad, memsad: {variant: composite, reference_size: 2, history_size: 100,
    mode: mean, watermark: green, proactive_threshold: 0.0}}
  weighted: {detector: memsad, memsad: {variant: weighted, reference_size: 2, watermark: green,
    proactive_threshold: -0.5}}
  rolling: {detector: memsad, memsad: {reference_size: 4, window: 20, calibration: {strategy: rolling}},
    detect: {calibration: {strategy: rolling}}}
  ewma: {detector: memsad, memsad: {reference_size: 4, calibration: {strategy: ewma}}}
  hinkley: {memsad: {reference_size: 4, calibration: {strategy: page_hinkley}},
    detect: {calibration: {strategy: page_hinkley}}}
  adwin: {memsad: {reference_size: 4, calibration: {strategy: adwin}}, detect: {calibration: {strategy: adwin}}}
  mstar: {memsad: {reference_size: 4, calibration: {strategy: m_star}}, detect: {calibration: {strategy: m_star}}}
  ranks: {memsad: {reference_size: 4, alpha: 0.2, calibration: {strategy: conformal, gamma: 0.05, credit: true}},
    detect: {alpha: 0.2, threshold: 0.5, calibration: {strategy: conformal, gamma: 0.05, credit: true}}}
""")
SCORED = ("fixed", "plus", "composite", "weighted", "rolling", "ewma", "hinkley", "adwin", "mstar", "ranks")


def first(town: Town) -> None:
    """Play what comes before the worker starts anew."""
    acme = Tenant(town, "acme")
    people(acme)
    outside(acme)
    held(acme)
    bad_input(acme)
    looked_back(Tenant(town, "looking"))
    strict(Tenant(town, "strict"))
    words(Tenant(town, "words"))
    for name in ("taken", "whole", "told"):
        secrets(Tenant(town, name))
    unread(Tenant(town, "unread"))
    worded(Tenant(town, "orders"))
    related(Tenant(town, "related"))
    for name in SCORED:
        scored(Tenant(town, name))


def second(town: Town) -> None:
    """Play what comes after it."""
    acme = Tenant(town, "acme")
    reviewed(acme)
    landed(acme)
    protected(acme)
    revoked(acme)
    policies(acme)
    strict_again(Tenant(town, "strict"))
    looked_back_again(Tenant(town, "looking"))
    words_again(Tenant(town, "words"))
    unread_again(Tenant(town, "unread"))
    for name in SCORED:
        scored_again(Tenant(town, name))
    everybody(acme)
    later(acme)
    acme.ask("r-withheld", "b1", "What was written past the gate?", withheld={"forged": 2, "stale": 1})
    used(Tenant(town, "used"))
    at_the_desk(Tenant(town, "desk"))
