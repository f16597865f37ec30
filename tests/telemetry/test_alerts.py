"""Alerts, runbooks, dashboard and registry tell of the same things."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsluice.deployment.paths import cache_dir
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.registry import METRICS

TOP = Path(__file__).resolve().parents[2]
RULES = TOP / "deploy" / "prometheus" / "alerts.yaml"
TESTS = RULES.with_name("alerts_test.yaml")
SERIES = {
    metric.exported + suffix
    for metric in METRICS
    for suffix in (("_bucket", "_count", "_sum") if metric.kind == "histogram" else ("",))
}


def alerts() -> dict[str, Any]:
    """Return the alerts by name."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def test_rules_and_dashboard_ask_for_metrics_that_there_are() -> None:
    """A renamed metric would silence an alert for ever, and nobody would see it."""
    asked = set(re.findall(r"\bmemsluice_[a-z_0-9]+", RULES.read_text() + TESTS.read_text()))
    assert asked
    assert asked <= SERIES
    board = json.loads((TOP / "deploy" / "grafana" / "memsluice.json").read_text())
    shown = set(re.findall(r"\bmemsluice_[a-z_0-9]+", json.dumps([panel["targets"] for panel in board["panels"]])))
    assert shown <= SERIES
    assert len(board["panels"]) == len(METRICS)


def test_every_counter_that_an_alert_asks_for_is_there_at_0_before_anything_happened() -> None:
    """Prometheus sees no increase in a series that is born at 1: the first operator-tier write would page nobody."""
    counters = {metric.exported: metric for metric in METRICS if metric.kind == "counter"}
    fresh = Meters().collectors
    asked = [
        (name, dict(re.findall(r'(\w+)=~?"([^"]+)"', matchers)))
        for rule in alerts().values()
        for name, matchers in re.findall(r"\b(memsluice_\w+_total)(?:\{([^}]*)\})?", rule["expr"])
    ]
    assert {"memsluice_memory_writes_total", "memsluice_dead_letters_total"} <= {name for name, _ in asked}
    for name, matchers in asked:
        series = [each for family in fresh.collect() for each in family.samples if each.name == name]
        assert len(series) == max(1, len(counters[name].known)), name
        for label, values in matchers.items():
            assert set(values.split("|")) <= {each.labels[label] for each in series}, (name, label)
        assert {each.value for each in series} == {0.0}


def test_the_alerts_tests_begin_with_series_as_a_worker_emits_them() -> None:
    """A unit test on a series that starts in a way the exporter never does proves nothing."""
    fresh = {(each.name, frozenset(each.labels.items())) for f in Meters().collectors.collect() for each in f.samples}
    checked = 0
    for test in yaml.safe_load(TESTS.read_text())["tests"]:
        for given in test["input_series"]:
            name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})?", given["series"]).groups()
            if name.endswith("_total"):
                own = set(re.findall(r'(\w+)="([^"]*)"', labels or "")) - {("job", "memsluice")}
                own = {pair for pair in own if pair[0] != "instance"}
                assert (name, frozenset(own)) in fresh, given["series"]
                assert re.match(r"(_x\d+ )?0", given["values"]), given["series"]
                checked += 1
    assert checked > len(alerts())


def test_every_alert_has_a_runbook_and_a_unit_test() -> None:
    """Whoever is woken has a page to open, and it is known that the alert can fire."""
    headings = set(re.findall(r"^## (\w+)$", (TOP / "docs" / "runbooks.md").read_text(), re.MULTILINE))
    assert headings == alerts().keys()
    fires = {
        case["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert fires == alerts().keys()
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/runbooks.md#{name.lower()}"


def test_the_alerts_fire_on_what_they_should_and_keep_quiet_otherwise() -> None:
    """Prometheus itself evaluates the rules over series made for it."""
    promtool = shutil.which("promtool") or shutil.which(str(cache_dir() / "promtool"))
    if promtool is None:
        pytest.skip("needs promtool: Debian package prometheus, or scripts/fetch-promtool")
    result = subprocess.run([promtool, "test", "rules", TESTS.name], cwd=TESTS.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_drills_prometheus_scrapes_and_has_the_alerts() -> None:
    """Prometheus itself reads the configuration, whose rules are the shipped ones."""
    promtool = shutil.which("promtool") or shutil.which(str(cache_dir() / "promtool"))
    if promtool is None:
        pytest.skip("needs promtool: Debian package prometheus, or scripts/fetch-promtool")
    file = RULES.with_name("prometheus.yaml")
    result = subprocess.run([promtool, "check", "config", str(file)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SUCCESS: 1 rule files found" in result.stdout


def test_the_collector_listens_on_loopback_unless_told_otherwise() -> None:
    """Whoever reaches an open receiver writes spans into the traces that the on-call engineer reads."""
    config = yaml.safe_load((TOP / "deploy" / "otel" / "collector.yaml").read_text())
    listens = [protocol["endpoint"] for protocol in config["receivers"]["otlp"]["protocols"].values()]
    assert [re.sub(r"^\$\{env:\w+:-(.*)\}$", r"\1", address) for address in listens] == ["127.0.0.1:4318"]
