"""What a check finds, and the checks that need nothing but this machine: files, disk, keys, policies, model."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from memsluice.deployment import sqlite
from memsluice.deployment.home import Home
from memsluice.deployment.paths import HOME_VARIABLE, in_words
from memsluice.deployment.space import SCARCE_BYTES, SCARCE_SHARE, Room, RoomState
from memsluice.encoder import ENCODER_VARIABLE, EncoderSetting, Running, space_of_encoder
from memsluice.encoder.registry import DEFAULT_ENCODER, load
from memsluice.envelope.keys import KeyState, Purpose
from memsluice.envelope.space import DEFAULT, Space
from memsluice.errors import BrokerUnavailable, MemsluiceError, PolicyError, StoreUnavailable
from memsluice.gate.policy.lint import lint
from memsluice.gate.policy.model import DAY_MS, load_or_default
from memsluice.keystore.store import KeyStore
from memsluice.operations.store import lost

KEY_LEFT_MS_MIN = 7 * DAY_MS
BUSY_S_MAX = 5.0


class CheckState(StrEnum):
    """How it is. ``warn`` runs for now; ``fail`` does not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was looked at: how it is, in words, and what to do about it ("" where nothing)."""

    what: str
    state: CheckState
    said: str
    remedy: str = ""

    def as_data(self) -> dict[str, str]:
        """Return the result as JSON values; programs read the remedy as ``do``."""
        return {"what": self.what, "state": self.state.value, "said": self.said, "do": self.remedy}


Check = Callable[[], Iterator[CheckResult]]


UNANSWERED = {
    "workers": "see memsluice stack status, or the broker's own log",
    "partitions": "see memsluice stack status, or the broker's own log",
    "broker clock": "see memsluice stack status, or the broker's own log",
    "store": "see memsluice stack status, or the store's own log",
}
"""What to do where a check got no answer. Any other error says itself what to do: a missing password is in no log."""
POLICY = "find the mistake with memsluice policy check FILE; workers refuse the file at their next start"

NEEDS = {
    "workers": ("broker",),
    "partitions": ("broker", "keys"),
    "broker clock": ("broker",),
    "encoder": ("memory", "store"),
}
"""Checks that would wait for what does not answer, or cannot be read, and find nothing new."""


def run(checks: dict[str, Check]) -> Iterator[CheckResult]:
    """Yield what each check finds; one that raises is itself a finding, and the others go on.

    What needs another thing that fails is not asked.
    """
    failed = set[str]()
    for what, check in checks.items():
        needed = next((other for other in NEEDS.get(what, ()) if other in failed), None)
        if needed is not None:
            yield CheckResult(what, CheckState.WARN, f"not checked, because the {needed} check failed")
            continue
        for finding in _found(what, check):
            if finding.state is CheckState.FAIL:
                failed.add(finding.what)
            yield finding


def _found(what: str, check: Check) -> Iterator[CheckResult]:
    try:
        yield from check()
    except (BrokerUnavailable, StoreUnavailable) as error:
        yield CheckResult(what, CheckState.FAIL, str(error), UNANSWERED.get(what, ""))
    except PolicyError as error:
        yield CheckResult(what, CheckState.FAIL, str(error), POLICY)
    except MemsluiceError as error:
        yield CheckResult(what, CheckState.FAIL, str(error))
    except OSError as error:
        yield CheckResult(what, CheckState.FAIL, in_words(error, do=UNANSWERED.get(what, "")))


def disk(home: Home) -> Iterator[CheckResult]:
    """Whether the home is there, this user's to write and nobody else's to read, and has room."""
    if home.path.is_file():
        said = f"{home.path} is a file and not a folder"
        yield CheckResult("home", CheckState.FAIL, said, f"name another home with --home FOLDER or {HOME_VARIABLE}")
        return
    if not home.path.is_dir():
        yield CheckResult("home", CheckState.FAIL, f"{home.path} does not exist", "memsluice keys init")
        return
    mode = home.path.stat().st_mode & 0o777
    parts = [home.path, *(path for path in (home.log_file, home.store_file) if path.exists())]
    closed = [path for path in parts if not os.access(path, os.W_OK)]
    if closed:
        said = f"this user cannot write {', '.join(map(str, closed))}: commands that only read work"
        do = f"chmod u+rw {' '.join(map(str, closed))}; or use the home's owner, and a disk that is not read-only"
        yield CheckResult("home", CheckState.FAIL, said, do)
    elif mode & 0o077:
        yield CheckResult(
            "home", CheckState.FAIL, f"other users can read {home.path} (mode {mode:o})", f"chmod 700 {home.path}"
        )
    else:
        yield CheckResult("home", CheckState.OK, str(home.path))
    yield room(Room.of(home.path))


def room(found: Room) -> CheckResult:
    """Judge how much room the home's disk has."""
    remedy = (
        f"free some space: state and logs are kept here; below {SCARCE_BYTES >> 30} GiB or {SCARCE_SHARE:.0%} this "
        "check fails, and soon after the store and the broker take nothing new until there is room"
    )
    state = {RoomState.OK: CheckState.OK, RoomState.LOW: CheckState.WARN, RoomState.SCARCE: CheckState.FAIL}[
        found.state
    ]
    return CheckResult("disk", state, str(found), "" if state is CheckState.OK else remedy)


def keys(store: KeyStore, now_ms: int) -> Iterator[CheckResult]:
    """Whether the gate can sign now and for the days to come, and which credentials run out."""
    keyring = store.load_keyring()
    for purpose in (Purpose.SEAL, Purpose.ADMISSION):
        key = keyring.signing(purpose, now_ms)
        if key.not_after_ms is not None and key.not_after_ms - now_ms < KEY_LEFT_MS_MIN:
            said = f"{purpose.value} key {key.kid} expires in {(key.not_after_ms - now_ms) / DAY_MS:.1f} days"
            yield CheckResult("keys", CheckState.WARN, said, f"memsluice keys rotate {key.kid}")
        else:
            yield CheckResult("keys", CheckState.OK, f"{purpose.value} key {key.kid} signs")
    late = []
    for credential in store.load_registry().all():
        usable = credential.kid in keyring and keyring.get(credential.kid).state is KeyState.ACTIVE
        end = credential.not_after_ms
        if usable and end is not None and now_ms < end < now_ms + KEY_LEFT_MS_MIN:
            late.append(credential.kid)
    if late:
        said = f"{len(late)} credentials expire within a week: {', '.join(late[:3])}{' …' if len(late) > 3 else ''}"
        yield CheckResult("credentials", CheckState.WARN, said, f"memsluice keys rotate {late[0]}")
    else:
        yield CheckResult(
            "credentials", CheckState.OK, f"{len(store.load_registry().all())} in the registry, none expires soon"
        )


def embedded(home: Home) -> Iterator[CheckResult]:
    """Whether the embedded log and store, where there are any, can be read from their first page to their last."""
    for what, path in (("log", home.log_file), ("memory", home.store_file)):
        if path == home.store_file and home.log_file.exists() and not (path.exists() and path.stat().st_size):
            yield from _no_store(home)
            continue
        if not path.exists():
            continue
        said, _, do = sqlite.problem(f"the embedded {what}", path, BUSY_S_MAX).partition(": ")
        state = CheckState.FAIL if said else CheckState.OK
        yield CheckResult(what, state, said or f"{path}: every page is as it should be", do)


def _no_store(home: Home) -> Iterator[CheckResult]:
    """Say of a store without a byte, or without a file, that it is lost, unless nothing has landed: the log tells."""
    try:
        missing = lost.is_lost(home)
    except MemsluiceError:
        return  # what is wrong with the log is found beside it
    if missing:
        yield CheckResult("memory", CheckState.FAIL, lost.in_words(home), lost.REMEDY)


def policies(home: Home) -> Iterator[CheckResult]:
    """Whether the home's policy file can be read, and which of its settings are risky."""
    found = load_or_default(home.policy_file)
    yield CheckResult("policy file", CheckState.OK, found.default.digest)
    for remark in lint(found):
        yield CheckResult("policy file", CheckState.WARN, f"{remark.where}: {remark.text}", "memsluice policy check")


def crashed(home: Home) -> Iterator[CheckResult]:
    """Say of a home whose stack has left its report, and does not run, that it was not stopped by anybody."""
    yield CheckResult(
        "stack", CheckState.FAIL, f"the stack of {home.path} does not run, and nobody stopped it", "memsluice stack up"
    )


def model(setting: EncoderSetting) -> Iterator[CheckResult]:
    """Whether the deployment's encoder can be had: of the default one whether its weights are the published ones."""
    if setting.name == DEFAULT_ENCODER and not setting.model:
        from memsluice.encoder.weights import MODEL_ID, find_weights

        yield CheckResult("model", CheckState.OK, f"{MODEL_ID}, digests as published, in {find_weights()}")
        return
    yield CheckResult("model", CheckState.OK, f"{_space(setting)}, as {ENCODER_VARIABLE} names it")


def encoder(setting: EncoderSetting, space: Callable[[], Space | None]) -> Iterator[CheckResult]:
    """Whether the memory's vectors, of the encoder that ``space`` returns, are of the one that this process has."""
    from memsluice.stores.base import check_space

    held = space()
    if held is not None:
        check_space(held, _space(setting))
    said = "the memory has no vectors yet" if held is None else f"the memory's vectors are of {held}"
    yield CheckResult("encoder", CheckState.OK, said)


def _space(setting: EncoderSetting) -> Space:
    """Return what the encoder's vectors may be compared in; only the default one's can be told without loading it."""
    if setting.name == DEFAULT_ENCODER and not setting.model:
        return DEFAULT
    return space_of_encoder(load(setting, Running()))
