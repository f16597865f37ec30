"""No policy gets looser by accident: what lets more happen is told and agreed to before anybody signs."""

import json
from pathlib import Path

import pytest
from tests.command import Shown, run
from tests.gate.build import RING, TENANT
from tests.gate.test_activation import FOR_ALL, STRICT, order
from tests.policies.test_policies import NOW, Audit
from tests.provenance.shop import Shop

from memsluice.cli.policy_effect import OTHERS_SHOWN_MAX
from memsluice.envelope.registry import Role
from memsluice.gate.policy.model import Policy, default, laid_over, parse, shipped
from memsluice.gate.policy.strictness import READINGS
from memsluice.keystore.store import issue_credential
from memsluice.operations.policies.commands import activation, ending
from memsluice.operations.policies.effect import effect_of
from memsluice.operations.policies.loosening import Loosening, differences, loosened

OPERATORS = ("--kid", "op-1", "--kid", "op-2")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A home with two operators, whose policy file allows twenty writes a day."""
    shop = Shop(tmp_path_factory.mktemp("loosening") / "home")
    for kid in ("op-1", "op-2"):
        issue_credential(shop.keys, Role.OPERATOR, "operator", ["*"], kid=kid)
    shop.home.policy_file.write_text(
        "name: file\nwrites_per_day: {user_verified: 10, user_observed: 20}\nmemsad: {kappa: 1.5}\n"
    )
    shop.note("n1")
    return shop


def typed(shop: Shop, *words: str, stdin: str = "") -> Shown:
    """Run ``memsluice`` on the home."""
    return run(*words, "--home", str(shop.home.path), stdin=stdin)


def looser(before: str, after: str) -> list[Loosening]:
    """Return what gets looser from one policy file to another."""
    old, new = parse(before), parse(after)
    return list(loosened(differences(old, new), new))


def fields(policy: object, prefix: str = "") -> set[str]:
    """Return the dotted names of a policy's fields."""
    found = set()
    for name, value in policy.items():  # type: ignore[attr-defined]
        found |= fields(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name}
    return found


def test_every_field_of_a_policy_has_a_reading() -> None:
    """A field that is added to policies must say in which direction it lets more happen."""
    assert fields(default().default.model_dump(mode="json")) == READINGS.keys()


CHANGES = [
    ({"content_bytes_max": 280}, {"content_bytes_max": 8_192}),
    ({"writes_per_day": {"user_observed": 20}}, {"writes_per_day": {"user_observed": None}}),
    ({"mode": "enforce"}, {"mode": "shadow"}),
    ({"profile": "strict"}, {"profile": "tiered"}),
    ({"taint": "session"}, {"taint": "parents"}),
    ({"taint": "turn"}, {"taint": "parents"}),
    ({"wording": {"own": 0.2}}, {"wording": {"own": 0.1}}),
    ({"wording": {"action": "hold"}}, {"wording": {"action": "report"}}),
    ({"detect": {"reach": ["own", "shared"]}}, {"detect": {"reach": ["shared"]}}),
    ({"detect": {"look_back": True}}, {"detect": {"look_back": False}}),
    ({"memsad": {"kappa": 1.5}}, {"memsad": {"kappa": 2.0}}),
    ({"instructions": {"enabled": True}}, {"instructions": {"enabled": False}}),
    ({"renew_on_use": {"enabled": False}}, {"renew_on_use": {"enabled": True}}),
    ({"drift": {"action": "hold"}}, {"drift": {"action": "ignore"}}),
    ({"sensitive": {"action": "hold"}}, {"sensitive": {"action": "report"}}),
    ({"commands": {"promotions_per_day": 3}}, {"commands": {"promotions_per_day": None}}),
]


@pytest.mark.parametrize(("strict", "loose"), CHANGES, ids=[json.dumps(loose) for _, loose in CHANGES])
def test_what_lets_more_happen_is_looser_and_the_way_back_is_not(strict: dict, loose: dict) -> None:  # type: ignore[type-arg]
    """Each direction by its own: a limit raised or ended, a rule that only reports, a reach that is left out."""
    old, new = (laid_over(default().default, change) for change in (strict, loose))
    told = loosened(differences(_alone(old), _alone(new)), _alone(new))
    assert len(told) == 1
    assert loosened(differences(_alone(new), _alone(old)), _alone(old)) == ()


def _alone(policy: Policy):  # type: ignore[no-untyped-def]
    return parse(json.dumps(policy.model_dump(mode="json")))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("detector: default", "detector: memsad"),
        ("taint: turn", "taint: influence"),
        ("sensitive: {action: redact}", "sensitive: {action: hold}"),
        ("memsad: {calibration: {strategy: fixed}}", "memsad: {calibration: {strategy: ewma}}"),
    ],
)
def test_what_nobody_can_rank_counts_as_looser_both_ways(one: str, other: str) -> None:
    """Two rules that hold other things: a person says whether the change is meant, whichever comes first."""
    texts = [f"name: x\n{text}\n" for text in (one, other)]
    assert len(looser(*texts)) == len(looser(*reversed(texts))) == 1


def test_a_map_given_in_part_names_the_limit_that_it_removes_and_how_to_keep_it() -> None:
    """The policy that was meant to be stricter: one rate lower, the other gone, since the map does not name it."""
    told = looser(shipped("default"), "name: careful\nwrites_per_day: {user_observed: 20}\n")
    assert [(one.change.field, one.left_out) for one in told] == [("writes_per_day.user_verified", True)]
    assert told[0].words().startswith("10 → no limit: the file's map writes_per_day does not name user_verified")
    assert told[0].words().endswith("write user_verified: 10 into it")
    said = looser(shipped("default"), "name: x\nwrites_per_day: {user_verified: null, user_observed: 20}\n")
    assert [(one.left_out, one.words()) for one in said] == [(False, "10 → no limit")]


def test_a_tenants_override_in_part_is_told_for_that_tenant() -> None:
    """An override replaces no more than it names; over a file without the map it drops the default's other limits."""
    told = looser("name: x\n", "name: x\ntenants: {acme: {ttl_seconds: {external_web: 60}}}\n")
    assert {one.change.who for one in told} == {"acme"}
    assert {one.change.field for one in told} == {
        "ttl_seconds.user_verified", "ttl_seconds.user_observed", "ttl_seconds.external_tool",
    }  # fmt: skip
    assert all(one.left_out for one in told)
    both = "name: x\nttl_seconds: {user_observed: 9, external_web: 90}\n"
    assert looser(both, f"{both}tenants: {{acme: {{ttl_seconds: {{external_web: 60}}}}}}\n") == []


def test_an_activation_is_compared_with_what_is_in_force_for_its_tenant() -> None:
    """Its own policy before everybody's, everybody's before the home's file; an end leads back to everybody's."""
    file = parse("name: file\nprofile: strict\n")
    new = activation("name: new\n", TENANT, "c", NOW)
    told = effect_of(Audit(), RING, new, file)
    assert (told.was, told.by_file, told.known) == (file.default.digest, True, True)
    assert [one.change.field for one in told.looser] == ["profile"]
    audit = Audit(order(FOR_ALL, tenant="*"), order(STRICT))
    own = effect_of(audit, RING, new, file)
    assert (own.was.split("@")[0], own.by_file, own.now) == ("strict", False, parse("name: new\n").default.digest)
    assert {one.change.who for one in own.looser} == {TENANT}
    back = effect_of(audit, RING, ending(audit, RING, TENANT, "c", NOW), file)
    assert (back.was, back.now) == (own.was, parse(FOR_ALL).of(TENANT).digest)
    nobodys = Audit(order(STRICT))
    assert effect_of(nobodys, RING, ending(nobodys, RING, TENANT, "c", NOW), file).now == file.default.digest


def test_where_the_audit_lost_its_beginning_any_limit_may_get_looser() -> None:
    """An activation that retention took is still in force: what is not known is agreed to like what is looser."""
    audit = Audit(order(STRICT), order(STRICT, digest="0" * 64))
    new = activation(STRICT, TENANT, "c", NOW)
    told = effect_of(audit, RING, new, default())
    assert (told.known, told.to_accept) == (True, False)
    audit.records = audit.records[1:]
    told = effect_of(audit, RING, new, parse(STRICT))
    assert (told.known, told.looser, told.to_accept) == (False, (), True)


def test_yes_alone_signs_nothing_that_gets_looser(shop: Shop, tmp_path: Path) -> None:
    """The file of the incident: what it removes is printed with its old value, and needs a word of its own."""
    file = tmp_path / "careful.yaml"
    file.write_text(
        "name: careful\ncontent_bytes_max: 280\nwrites_per_day: {user_observed: 15}\nmemsad: {kappa: 1.5}\n"
    )
    words = ("policy", "activate", str(file), "--tenant", "acme", *OPERATORS)
    refused = typed(shop, *words, "--yes")
    assert refused.code == 1
    assert "LOOSER  acme  writes_per_day.user_verified  10 → no limit" in refused.out
    assert "acme  content_bytes_max  8192 → 280" in refused.out
    assert "1 setting gets looser, and --yes does not agree to that, so nothing was signed" in refused.said
    assert "policy file of its home" in typed(shop, "policy", "show", "acme").out
    for answers in ("n\n", "y\nn\n"):
        assert typed(shop, *words, stdin=answers).code == 1
    assert "policy file of its home" in typed(shop, "policy", "show", "acme").out
    done = typed(shop, *words, "--yes", "--loosen")
    assert (done.code, "done in 1 partition" in done.out) == (0, True), done.out + done.err
    kept = tmp_path / "kept.yaml"
    kept.write_text("name: kept\ncontent_bytes_max: 280\nwrites_per_day: {user_observed: 15, user_verified: 10}\n"
                    "memsad: {kappa: 1.5}\n")  # fmt: skip
    stricter = typed(shop, "policy", "activate", str(kept), "--tenant", "acme", *OPERATORS, "--yes")
    assert (stricter.code, "LOOSER" in stricter.out) == (0, False), stricter.out + stricter.err
    ended = typed(shop, "policy", "activate", "--end", "--tenant", "acme", *OPERATORS, "--yes")
    assert (ended.code, "LOOSER  acme  content_bytes_max  280 → 8192" in ended.out) == (1, True)
    assert typed(shop, "policy", "activate", "--end", "--tenant", "acme", *OPERATORS, stdin="y\ny\n").code == 0


def test_the_second_operator_agrees_to_what_gets_looser_too(shop: Shop, tmp_path: Path) -> None:
    """A proposal shows it to who signs second, against what is in force then, and --yes does not answer for them."""
    policy, proposal = tmp_path / "loose.yaml", tmp_path / "proposal.json"
    policy.write_text("name: loose\nmode: shadow\n")
    words = ("policy", "activate", str(policy), "--tenant", "acme", "--kid", "op-1", "--propose", str(proposal))
    assert typed(shop, *words, "--yes").code == 1
    assert not proposal.exists()
    assert typed(shop, *words, "--yes", "--loosen").code == 0
    second = ("approve", str(proposal), "--kid", "op-2")
    refused = typed(shop, *second, "--yes")
    assert (refused.code, "LOOSER  acme  mode  enforce → shadow" in refused.out) == (1, True), refused.out
    assert typed(shop, *second, stdin="y\nn\n").code == 1
    assert "policy file of its home" in typed(shop, "policy", "show", "acme").out
    done = typed(shop, *second, "--yes", "--loosen")
    assert done.code == 0, done.out + done.err
    assert typed(shop, "policy", "activate", "--end", "--tenant", "acme", *OPERATORS, "--yes").code == 0


def test_what_another_policy_was_in_force_for_is_said_afterwards(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the preview and the gate's decision another one was put in force: the answer tells that it was."""
    policy = tmp_path / "same.yaml"
    policy.write_text(shop.home.policy_file.read_text())
    first = typed(shop, "policy", "activate", str(policy), "--tenant", "acme", *OPERATORS, "--yes")
    assert (first.code, "The differences above were against" in first.out) == (0, False), first.out
    monkeypatch.setattr("memsluice.operations.policies.effect.own_and_everybodys", lambda *_: (None, None))
    shop.home.policy_file.write_text(policy.read_text() + "content_bytes_max: 8000\n")
    told = typed(shop, "policy", "activate", str(policy), "--tenant", "acme", *OPERATORS, "--yes", "--loosen")
    shop.home.policy_file.write_text(policy.read_text())
    assert (told.code, "The differences above were against" in told.out) == (0, True), told.out
    monkeypatch.undo()
    assert typed(shop, "policy", "activate", "--end", "--tenant", "acme", *OPERATORS, "--yes").code == 0


def test_of_many_changes_all_that_gets_looser_is_listed(shop: Shop, tmp_path: Path) -> None:
    """The list of what is stricter is bounded; of what is looser nothing is left out, and `policy diff` marks it."""
    many = OTHERS_SHOWN_MAX + 5
    tenants = ", ".join(f"t{number}: {{mode: shadow, profile: strict}}" for number in range(many))
    file = tmp_path / "many.yaml"
    file.write_text(f"{shop.home.policy_file.read_text()}tenants: {{{tenants}}}\n")
    told = typed(shop, "policy", "activate", str(file), *OPERATORS, "--yes").out.splitlines()
    assert sum("LOOSER" in line for line in told) == many
    assert f"  and {many - OTHERS_SHOWN_MAX} changes more, none of them looser" in told
    words = ("policy", "diff", str(file), str(shop.home.policy_file))
    assert [one["looser"] for one in json.loads(typed(shop, *words, "--json").out)].count(True) == many
    assert sum(line.rstrip().endswith("LOOSER") for line in typed(shop, *words).out.splitlines()) == many
