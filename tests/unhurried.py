"""What Hypothesis is not to mind in a test that settles for one page, or one folder, for all of its examples."""

from hypothesis import HealthCheck

UNHURRIED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
"""A machine that stands still for a while draws slowly: that says nothing of the strategy."""
