"""Policies: YAML in, digest out, errors that name the field, lint."""

import pytest
from typer.testing import CliRunner

from memsluice.cli.policy import app
from memsluice.errors import PolicyError
from memsluice.gate import policy
from memsluice.gate.lint import Severity, lint


def test_the_digest_names_what_is_in_force_and_nothing_else() -> None:
    """Spelling a default out keeps the digest; changing any number changes it."""
    plain = policy.parse("name: default").default
    assert plain.digest == policy.parse("name: default\nmode: enforce\nmemsad: {kappa: 2.0}").default.digest
    assert plain.digest != policy.parse("name: default\nmemsad: {kappa: 2.5}").default.digest
    assert plain.digest == policy.default().default.digest


def test_a_tenants_override_changes_that_tenant_alone_and_keeps_the_rest() -> None:
    """Overrides merge into the file's policy field by field."""
    found = policy.parse("name: p\nmemsad: {kappa: 3.0}\ntenants: {acme: {memsad: {mode: max}}}")
    assert (found.of("acme").memsad.mode, found.of("acme").memsad.kappa) == ("max", 3.0)
    assert found.of("globex").memsad.mode == "combined"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("name: p\nprofil: strict", "profil"),
        ("name: p\nmemsad: {kappa: -1}", "memsad.kappa"),
        ("name: p\ntenants: {acme: {ttl_seconds: {external_web: 0}}}", "tenants.acme.ttl_seconds.external_web"),
        ("name: Not A Name", "name"),
        ("- a list", "mapping"),
        ("name: [unclosed", "line"),
        ("name: p\ntenants: 3", "tenants"),
    ],
)
def test_a_bad_policy_is_refused_with_the_field_named(text, field) -> None:
    """An operator sees which line of which tenant is wrong, before it is in force."""
    with pytest.raises(PolicyError, match=field.replace(".", r"\.")):
        policy.parse(text)


def test_lint_warns_of_what_is_legal_and_unwise() -> None:
    """Shadow mode, immortal web content and a gate that screens nothing are said."""
    text = "name: p\nmode: shadow\nttl_seconds: {external_web: null, external_tool: 10}\n"
    text += "instructions: {enabled: false}\nmemsad: {enabled: false}"
    remarks = lint(policy.parse(text))
    assert {remark.where for remark in remarks} >= {"mode", "ttl_seconds.external_web", "instructions, memsad"}
    assert any(remark.severity is Severity.ERROR for remark in remarks)
    assert lint(policy.default()) == []


def test_the_command_fails_on_a_bad_file_and_passes_the_shipped_policy(tmp_path) -> None:
    """`memsluice policy check` ends 0 for what ships and not 0 for what is refused."""
    assert CliRunner().invoke(app, ["check"]).exit_code == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: p\nmemsad: {kappa: 99}")
    result = CliRunner().invoke(app, ["check", str(bad)])
    assert result.exit_code != 0
    assert isinstance(result.exception, PolicyError)
    assert "memsad.kappa" in str(result.exception)
