"""Policies: YAML in, digest out, errors that name the field, lint."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner
from yaml import YAMLError

from memsluice.cli.policy import app
from memsluice.errors import PolicyError
from memsluice.gate.policy import model, strictyaml
from memsluice.gate.policy.diff import EVERYONE, between
from memsluice.gate.policy.lint import Severity, lint


def test_the_digest_names_what_is_in_force_and_nothing_else() -> None:
    """Spelling a default out keeps the digest; changing any number changes it."""
    plain = model.parse("name: default").default
    assert plain.digest == model.parse("name: default\nmode: enforce\nmemsad: {kappa: 2.0}").default.digest
    assert plain.digest != model.parse("name: default\nmemsad: {kappa: 2.5}").default.digest
    assert plain.digest == model.default().default.digest


def test_a_tenants_override_changes_that_tenant_alone_and_keeps_the_rest() -> None:
    """Overrides merge into the file's policy field by field."""
    found = model.parse("name: p\nmemsad: {kappa: 3.0}\ntenants: {acme: {memsad: {mode: max}}}")
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
        ("name: p\ntenants: 0", "tenants"),
        ("name: p\nmode: enforce\nprofile: strict\nmode: shadow", "line 4.*mode"),
        ("name: p\nmemsad: {kappa: 2.0, kappa: 9.0}", "line 2.*kappa"),
        ('name: p\nmode: enforce\n"mode": shadow', "line 3.*mode"),
        ("name: p\ntenants: {acme: {}, globex: {}, acme: {mode: shadow}}", "line 2.*acme"),
        ("name: p\ntenants: {no: {mode: shadow}}", "tenants.False.*quotes"),
        ("name: p\ntenants: {Acme Corp: {mode: shadow}}", "tenants.Acme Corp"),
        (f"name: p\ntenants: {{{'a' * 64}: {{}}}}", "tenant's name"),
        ("name: " + "[" * 3_000, "levels deep"),
        ("name: p\nmemsad: " + "{a: " * 1_500, "levels deep"),
        ("name: !!timestamp soon", "not what it looks like"),
        ("name: 2026-13-01", "not what it looks like"),
    ],
)
def test_a_bad_policy_is_refused_with_the_field_named(text, field) -> None:
    """An operator sees which line of which tenant is wrong, before it is in force."""
    pattern = field.replace(".", r"\.").replace(r"\.*", ".*")
    with pytest.raises(PolicyError, match=f"(?s){pattern}"):
        model.parse(text)


def test_a_key_of_a_merged_mapping_may_be_set_again() -> None:
    """YAML's own ``<<`` is no repeated key: what is written out goes before what is merged in."""
    text = "name: p\nmemsad: &usual {kappa: 3.0, delta: 0.1}\ntenants: {acme: {memsad: {<<: *usual, kappa: 4.0}}}"
    found = model.parse(text).of("acme").memsad
    assert (found.kappa, found.delta) == (4.0, 0.1)


def test_lint_warns_of_what_is_legal_and_unwise() -> None:
    """Shadow mode, immortal web content and a gate that screens nothing are said."""
    text = "name: p\nmode: shadow\nttl_seconds: {external_web: null, external_tool: 10}\n"
    text += "detector: memsad\ninstructions: {enabled: false}\nmemsad: {enabled: false}"
    remarks = lint(model.parse(text))
    assert {remark.where for remark in remarks} >= {"mode", "ttl_seconds.external_web", "instructions, memsad"}
    assert any(remark.severity is Severity.ERROR for remark in remarks)
    assert lint(model.default()) == []


NO_BUDGET = "own: 0, relied: 0, shared: 0, with_pattern: 0, with_pattern_own: 0"
NO_FACTOR = "per_tier: {operator: 0, user_verified: 0, user_observed: 0, external_tool: 0, external_web: 0}"
NO_WORDING = "wording: {action: report}"
NO_EVIDENCE = "detect: {signals: []}"
NO_TRUSTED = "per_tier: {operator: 0, user_verified: 0, user_observed: 0}"
UNSEARCHED = "instructions: {enabled: false}"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{NO_WORDING}\n{NO_EVIDENCE}", ["wording, detect"]),
        (f"{NO_WORDING}\ndetect: {{reach: []}}", ["wording, detect"]),
        (f"{NO_WORDING}\ndetect: {{{NO_FACTOR}}}", ["wording, detect"]),
        (f"wording: {{{NO_BUDGET}}}\n{NO_EVIDENCE}", ["wording, detect"]),
        (f"wording: {{{NO_FACTOR}}}\n{UNSEARCHED}\n{NO_EVIDENCE}", ["wording, detect"]),
        (f"tenants: {{acme: {{{NO_WORDING}, {NO_EVIDENCE}}}}}", ["tenants.acme.wording, detect"]),
        (
            f"wording: {{{NO_TRUSTED}, with_pattern: 0, with_pattern_own: 0}}\ndetect: {{{NO_TRUSTED}}}",
            ["wording, detect"],
        ),
        (NO_EVIDENCE, []),
        (NO_WORDING, []),
        (f"wording: {{{NO_BUDGET}}}", []),
        (f"wording: {{{NO_FACTOR}}}\n{NO_EVIDENCE}", []),
        (f"{NO_WORDING}\ndetect: {{calibration: {{strategy: rolling}}, {NO_FACTOR}}}", []),
        ("instructions: {enabled: false}\nmemsad: {enabled: false}", []),
        (f"detector: memsad\n{NO_WORDING}\n{NO_EVIDENCE}", []),
        (f"detector: memsad\n{UNSEARCHED}\nmemsad: {{enabled: false}}", ["instructions, memsad"]),
    ],
)
def test_lint_says_that_nothing_screens_where_that_is_so(text: str, where: list[str]) -> None:
    """It is an error where neither wording nor evidence is left to hold anything, and none where one of them still
    does: a pattern has a budget of its own, and a strategy of mean and deviation no factors. What is reported beside
    the detector that decides does not count."""
    assert [one.where for one in lint(model.parse(f"name: p\n{text}")) if one.severity is Severity.ERROR] == where


ONLY_REPORTED = "what is unusual for the tenant is only reported"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NO_EVIDENCE, {"detect.signals": f"empty, so {ONLY_REPORTED}"}),
        ("detect: {reach: []}", {"detect.reach": f"empty, so {ONLY_REPORTED}"}),
        (f"detect: {{{NO_FACTOR}}}", {"detect.per_tier": f"0 for every trusted tier, so there {ONLY_REPORTED}"}),
        (
            "detect: {per_tier: {user_observed: 0, external_web: 0}}",  # outside content is contained, not held
            {"detect.per_tier": f"0 for user_observed, so there {ONLY_REPORTED}"},
        ),
        (NO_WORDING, {"wording.action": "report: writes that tell agents what to do land, and are only reported"}),
        (
            "wording: {own: 0}",
            {"wording.own": "0, so nothing of that reach is held for its wording, except with a pattern"},
        ),
        (
            f"wording: {{{NO_BUDGET}}}",
            {f"wording.{reach}": "0, so nothing of that reach is held for its wording" for reach in model.Reach},
        ),
        (
            f"wording: {{own: 0, relied: 0}}\n{UNSEARCHED}",
            {f"wording.{reach}": "0, so nothing of that reach is held for its wording" for reach in ("own", "relied")}
            | {
                "instructions.enabled": "false: the gate looks for no instruction pattern, for no order to set aside "
                "what agents were told, and at no form of facts"
            },
        ),
        (
            f"wording: {{{NO_FACTOR}}}",
            {
                "wording.per_tier": "0 for every trusted tier, so there nothing is held for its wording, except with a "
                "pattern"
            },
        ),
        ("sensitive: {action: report}", {"sensitive.action": "report: secrets and personal data land as they are"}),
        (f"detector: memsad\n{NO_WORDING}\n{NO_EVIDENCE}", {}),
        ("sensitive: {action: hold}", {}),
    ],
)
def test_lint_warns_of_each_part_that_holds_nothing(text: str, told: dict[str, str]) -> None:
    """Each is legal by itself and lets something land that is held by default: the remark names the field and says
    what. Of a detector that does not decide nothing is said."""
    remarks = lint(model.parse(f"name: p\n{text}"))
    assert {one.where: one.text for one in remarks} == told
    assert all(one.severity is Severity.WARNING for one in remarks)


def test_what_ships_has_no_remarks() -> None:
    """Operators who put a shipped policy in force are told of nothing to mend."""
    for name in model.shipped_names():
        assert lint(model.parse(model.shipped(name))) == []


@pytest.mark.parametrize(
    ("text", "where", "tiers"),
    [
        ("ttl_seconds: {user_observed: 60}", "ttl_seconds", "user_verified, external_tool, external_web"),
        ("ttl_seconds: {}", "ttl_seconds", "user_verified, user_observed, external_tool, external_web"),
        ("writes_per_day: {external_web: 1}", "writes_per_day", "user_verified, user_observed"),
        ("tenants: {acme: {writes_per_day: {user_verified: 9}}}", "tenants.acme.writes_per_day", "user_observed"),
    ],
)
def test_lint_warns_of_limits_that_a_partial_map_drops(text, where, tiers) -> None:
    """A map that names one tier takes every other tier's limit away; null is how to mean it."""
    said = {remark.where: remark.text for remark in lint(model.parse(f"name: p\n{text}"))}
    assert said[where].startswith(f"{tiers}: ")
    meant = "name: p\nttl_seconds: {user_verified: null, user_observed: 9, external_tool: 8, external_web: 7}"
    assert lint(model.parse(meant)) == []


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ("shared: 0.01", "shared", "the budget is smaller than `relied`, so what reaches more people is held less"),
        (
            "own: 0.014, relied: 0.013",
            "relied",
            "the budget is smaller than `own`, so what reaches more people is held less",
        ),
        ("own: 0.06, relied: 0.06", "with_pattern_own", "the budget is smaller than `own`, so it does nothing there"),
        ("with_pattern: 0.05", "with_pattern", "the budget is smaller than `shared`, so it does nothing there"),
    ],
)
def test_lint_warns_of_budgets_in_no_order(text: str, where: str, told: str) -> None:
    """What reaches more people must not be held less by oversight, nor a budget do nothing; equal ones are in order."""
    (remark,) = lint(model.parse(f"name: p\nwording: {{{text}}}"))
    assert (remark.where, remark.text.startswith(told)) == (f"wording.{where}", True)
    assert lint(model.parse("name: p\nwording: {own: 0.03, relied: 0.03, shared: 0.03}")) == []


HOSTILE = [
    'name: p\ntenants: {"[bold]x[/nope]": {mode: shadow}}',
    'name: p\ntenants: {"a\\e]0;owned\\a": {mode: shadow}}',
    'name: p\n"\\e[2J": 1',
    'name: p\nmemsad: {"\\u202Edasmem": 1}',
    "name: p\nmode: \u202eenforce, shadow]",
    'name: p\n"\\e[2J": 1\n"\\e[2J": 2',
    "name: [\u009b2J",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_policy_file_says_never_acts_on_the_terminal(tmp_path, text) -> None:
    """Markup, escapes and bidi controls in a tenant's or field's name are shown as what they are, in the error too."""
    file = tmp_path / "\x1b[2Jpolicy.yaml"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(file)])
    assert isinstance(result.exception, PolicyError)
    assert not [c for c in result.output + str(result.exception) if c != "\n" and not c.isprintable()]


def test_a_file_s_name_never_acts_on_the_terminal(tmp_path) -> None:
    """A file that somebody else named is compared with as any other."""
    file = tmp_path / "[bold]\x1b[2J.yaml"
    file.write_text("name: p", encoding="utf-8")
    result = CliRunner().invoke(app, ["diff", str(file), str(file)])
    shown = result.output.replace("\n", "")
    assert (result.exit_code, "[bold]<U+001B>[2J.yaml" in shown, "\x1b" in shown) == (0, True, False)


def test_the_command_fails_on_a_bad_file_and_passes_the_shipped_policy(tmp_path) -> None:
    """`memsluice policy check` ends 0 for what ships and not 0 for what is refused."""
    assert CliRunner().invoke(app, ["check"]).exit_code == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: p\nmemsad: {kappa: 99}")
    result = CliRunner().invoke(app, ["check", str(bad)])
    assert result.exit_code != 0
    assert isinstance(result.exception, PolicyError)
    assert "memsad.kappa" in str(result.exception)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("ttl_seconds: {user_observed: 10, external_tool: 20, external_web: 5}", "ttl_seconds"),
        ("memsad: {reference_size: 19}", "memsad.reference_size"),
        ("taint: turn", "taint"),
        ("writes_per_day: {user_observed: null}", "writes_per_day.user_observed"),
        ("ttl_seconds: {user_observed: 20, external_tool: 20}", "ttl_seconds"),
    ],
)
def test_each_unwise_choice_is_named_by_its_field(text: str, where: str) -> None:
    """The file's own and a single tenant's alike; the value next to the limit is not remarked."""
    assert where in [one.where for one in lint(model.parse(f"name: p\n{text}"))]
    for_one = lint(model.parse(f"name: p\ntenants: {{acme: {{{text}}}}}"))
    assert {one.where for one in for_one} >= {f"tenants.acme.{where}"}
    assert lint(model.parse("name: p\nmemsad: {reference_size: 20}")) == []


def test_a_file_of_any_length_is_refused_before_it_is_read_as_yaml() -> None:
    """A limit on everything: at the limit it is read, one character beyond it is not."""
    text = "name: p\n#" + "x" * (model.POLICY_BYTES_MAX - 9)
    assert model.parse(text).default.name == "p"
    with pytest.raises(PolicyError, match="longer than"):
        model.parse(text + "x")


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    """Not there, or no text: the message names the file."""
    with pytest.raises(PolicyError, match=r"gone\.yaml"):
        model.load(tmp_path / "gone.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"name: \xff")
    with pytest.raises(PolicyError, match=r"odd\.yaml"):
        model.load(tmp_path / "odd.yaml")


def test_changes_are_laid_over_a_policy_as_an_override_is() -> None:
    """Field by field, with the same checks; what is not named stays."""
    policy = model.parse("name: p\nmemsad: {kappa: 3.0, mode: max}").default
    over = model.laid_over(policy, {"memsad": {"kappa": 2.5}})
    assert (over.memsad.kappa, over.memsad.mode, over.name) == (2.5, "max", "p")
    with pytest.raises(PolicyError, match=r"memsad\.kappa"):
        model.laid_over(policy, {"memsad": {"kappa": -1}})


SCHEMA = orjson.loads((Path(__file__).resolve().parents[2] / "schemas/memsluice.policy.v1.json").read_bytes())
REQUIRED = {"CalibrationPolicy": {"strategy": "rolling"}, "Policy": {"name": "p"}}
PUBLISHED = [
    (name, field, said)
    for name, part in [*SCHEMA["$defs"].items(), ("Policy", SCHEMA)]
    if isinstance(getattr(model, name, None), type) and "properties" in part
    for field, said in part["properties"].items()
    if field in getattr(model, name).model_fields
]


def taken(name: str, field: str, value: Any) -> bool:
    """Whether a part of a policy takes a value for a field."""
    try:
        getattr(model, name).model_validate({**REQUIRED.get(name, {}), field: value})
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "field", "said"),
    PUBLISHED,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_takes_what_the_published_schema_says_and_no_more(name: str, field: str, said: dict[str, Any]) -> None:
    """Default, least and most value are those that operators read: the bound itself, and nothing beyond it."""
    found = getattr(model, name).model_fields[field]
    if "default" in said:
        default = found.get_default(call_default_factory=True)
        assert TypeAdapter(Any).dump_python(default, mode="json") == said["default"]
    for kind in said.get("anyOf", [said]):
        step = 1 if kind.get("type") == "integer" else 1e-6
        for bound, sign in (("minimum", -1), ("maximum", 1)):
            if bound in kind:
                assert taken(name, field, kind[bound])
                assert not taken(name, field, kind[bound] + sign * step)
        for bound, sign in (("exclusiveMinimum", -1), ("exclusiveMaximum", 1)):
            if bound in kind:
                assert not taken(name, field, kind[bound])
                assert taken(name, field, kind[bound] - sign * step)
        if "maxLength" in kind and "pattern" not in kind:
            assert taken(name, field, "a" * kind["maxLength"])
            assert not taken(name, field, "a" * (kind["maxLength"] + 1))
        for value in kind.get("enum", ()):
            assert taken(name, field, value)
            assert not taken(name, field, f"{value}~")


def test_most_fields_are_published() -> None:
    """The list above is not empty by a schema that was moved or a class that was renamed."""
    assert {name for name, _, _ in PUBLISHED} >= {"Policy", "PerTier", "MemsadPolicy", "DetectPolicy", "CommandsPolicy"}
    assert len(PUBLISHED) > 40


def test_a_changed_copy_is_the_policy_that_it_says() -> None:
    """Nothing that was taken from the fields before the copy stays with it: neither its digest nor its hash."""
    plain = model.default().default
    assert (plain.digest, hash(plain), hash(plain.memsad)) == (plain.digest, hash(plain), hash(plain.memsad))
    changed = plain.model_copy(update={"memsad": plain.memsad.model_copy(update={"kappa": 2.5})})
    read = model.laid_over(model.default().default, {"memsad": {"kappa": 2.5}})
    assert changed == read
    assert changed.digest == read.digest != plain.digest
    assert (hash(changed), hash(changed.memsad)) == (hash(read), hash(read.memsad))
    assert hash(changed.memsad) != hash(plain.memsad)


def test_what_differs_is_told_field_by_field_for_everybody_and_for_each_tenant() -> None:
    """First for everyone, then for each tenant that either names, with both values; what is alike is left out."""
    before = model.parse("name: p\nmemsad: {kappa: 2.0}\ntenants: {acme: {mode: shadow}}")
    after = model.parse("name: p\nmemsad: {kappa: 3.0}\ntenants: {globex: {ttl_seconds: {external_web: 60}}}")
    told = [(one.who, one.field, one.before, one.after) for one in between(before, after)]
    assert told == [
        (EVERYONE, "memsad.kappa", 2.0, 3.0),
        ("acme", "mode", "shadow", "enforce"),
        ("acme", "memsad.kappa", 2.0, 3.0),
        *(told_of for told_of in told if told_of[0] == "globex"),
    ]
    assert ("globex", "memsad.kappa", 2.0, 3.0) in told
    assert ("globex", "ttl_seconds.external_web", 3_600, 60) in told
    assert between(before, before) == ()


def test_sixteen_levels_are_read_and_no_more() -> None:
    """What nests deeper is no policy, and is refused before it is made into objects."""
    assert strictyaml.load("[" * 15 + "1" + "]" * 15) is not None
    with pytest.raises(YAMLError, match="16 levels"):
        strictyaml.load("[" * 16 + "1" + "]" * 16)
