"""Credentials that show by their own form: what their issuers prefix, tokens of open standards, passwords in addresses.

The forms are those that the issuers publish for secret scanning. Each goes with a literal that it holds: a text without
it, as nearly all are, is not searched. Whatever has no upper length has none here: a value goes as a whole.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from memsluice.gate.sensitive.hints import LONG, LONGER, Search
from memsluice.gate.sensitive.span import Span

_DIGIT = re.compile(r"[0-9]")
_SOLID = re.compile(r"[A-Za-z0-9]{16,}")


def _any(_: str) -> bool:
    return True


def _has_digit(value: str) -> bool:
    return _DIGIT.search(value) is not None


def _random(value: str) -> bool:
    """Whether it has a long part without a break, with a digit in it: words tied by dashes have none."""
    return any(_DIGIT.search(part[0]) for part in _SOLID.finditer(value))


def _mixed(value: str) -> bool:
    return _has_digit(value) and value.upper() != value and value.lower() != value


class _Form(NamedTuple):
    """``hint`` occurs, case and all, in whatever ``pattern`` matches; group 1 is the value, without one all of it."""

    kind: str
    hint: str
    pattern: re.Pattern[str]
    accept: Callable[[str], bool]


def _form(kind: str, hint: str, rest: str, accept: Callable[[str], bool] = _any) -> _Form:
    """Return a form that begins with its hint, where no letter or digit stands before that."""
    begin = re.escape(hint)
    return _Form(kind, hint, re.compile(f"{begin}(?<![A-Za-z0-9]{begin}){rest}"), accept)


_PUBLIC_KEYS = "B3NzaC1|C3NzaC1|E2VjZHNh|GnNrLX|InNrLW"
"""How OpenSSH's public keys go on behind AAAA: rsa and dss, ed25519, ecdsa, and those of security keys."""
_GITLAB = ("pat", "dt", "rt", "rtr", "ptt", "cbt", "soat", "ft", "imt", "agent", "oas", "ffct")
_VENDORS = (
    "dckr_pat_", "dckr_oat_", "glsa_", "glc_", "hvb.", "hvr.", "ATCTT3", "ATBB", "ntn_", "lin_api_", "sbp_",
    "sb_secret_",
    "figd_", "HRKU-", "dp.pt.", "dp.st.", "pul-", "pscale_tkn_", "pscale_pw_", "pscale_oauth_", "pnu_", "rubygems_",
    "sntrys_", "sntryu_", "squ_", "sqp_", "sqa_", "duffel_", "tskey-", "shippo_", "bkua_", "CCIPAT_", "CFPAT-", "lsv2_",
    "fo1_", "fm2_", "fm1r_", "ico-", "pat-na1-", "pat-eu1-", "nvapi-", "tvly-", "pcsk_", "fw_", "tgp_v1_", "phx_",
    "fc-",
    "e2b_", "napi_", "rnd_", "nfp_", "rzp_live_", "FLWSECK", "CLOJARS_", "rdme_", "AKCp", "AQVN", "re_",
    "access-production-",
    "v1.0-", "t1.", "cio", "sk-or-",
)  # fmt: skip
"""What other issuers put before a random part of theirs: code hosts, registries, clouds, models, payments."""

_FORMS = (
    *(_form("aws_key", one, r"[A-Z0-9]{16}(?![A-Za-z0-9])") for one in ("AKIA", "ASIA", "ABIA")),
    _form("aws_key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    *(_form("github_token", f"gh{one}_", r"[A-Za-z0-9_]{30,}") for one in "pousr"),
    _form("github_token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    *(_form("gitlab_token", f"gl{one}-", r"[\w.-]{16,}", _has_digit) for one in _GITLAB),
    _form("gitlab_token", "GR1348941", r"[\w-]{20,}"),
    _form("slack_token", "xox", r"[a-z](?:\.xox[a-z])?-[A-Za-z0-9%-]{10,}", _has_digit),
    _form("slack_token", "xapp-", r"[A-Za-z0-9-]{10,}", _has_digit),
    _Form("webhook", "hooks.slack.com/", re.compile(r"hooks\.slack\.com/(?:[a-z]+/)([\w/+-]{20,})"), _any),
    _Form("webhook", "/api/webhooks/", re.compile(r"discord(?:app)?\.com/api/webhooks/[0-9]+/([\w-]{20,})"), _any),
    _Form("webhook", "webhook.office.com/", re.compile(r"webhook\.office\.com/(?:webhookb2/)?([\w@/-]{40,})"), _any),
    _Form("webhook", "hooks.zapier.com/", re.compile(r"hooks\.zapier\.com/hooks/catch/([0-9]+/\w{5,})"), _any),
    *(_form("stripe_key", f"{one}_{mode}_", r"[A-Za-z0-9]{10,}") for one in ("sk", "rk") for mode in ("live", "test")),
    _form("stripe_key", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    _form("google_key", "AIza", r"[\w-]{35,}"),
    _form("google_key", "ya29.", r"[\w.-]{20,}"),
    _form("google_key", "GOCSPX-", r"[\w-]{20,}"),
    _form("google_key", "1//0", r"[\w-]{40,}"),
    *(_form("api_key", f"sk-{one}-", r"[\w-]{16,}", _has_digit) for one in ("ant", "proj", "svcacct", "admin")),
    _form("api_key", "sk-", r"[\w-]{20,}", _random),
    *(_form("api_key", one, r"[A-Za-z0-9]{30,}") for one in ("gsk_", "xai-", "pplx-", "r8_", "hf_", "csk-",
    "api_org_")),
    _form("api_key", "SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    _form("api_key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _form("api_key", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])"),
    _form("api_key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _Form("api_key", "-us", re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"), _any),
    _form("api_key", "dapi", r"[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    _form("api_key", "NRAK-", r"[A-Z0-9]{20,}"),
    _form("api_key", "PMAK-", r"[0-9a-f-]{40,}"),
    _form("api_key", "sq0", r"(?:atp|csp)-[\w-]{20,}"),
    _form("api_key", "LTAI", r"[A-Za-z0-9]{12,26}(?![A-Za-z0-9])", _has_digit),
    _form("api_key", "xkeysib-", r"[0-9a-f]{32,}[\w-]*"),
    _form("api_key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-?){3,5}", _has_digit),
    *(_form("token", f"shp{one}_", r"[0-9a-fA-F]{32,}") for one in ("at", "ca", "pa", "ss")),
    *(_form("token", f"{one}_v1_", r"[0-9a-f]{64,}") for one in ("dop", "doo", "dor")),
    _form("token", "npm_", r"[A-Za-z0-9]{36,}"),
    _form("token", "pypi-", r"[\w-]{50,}"),
    _form("token", "ATATT3", r"[\w=-]{40,}"),
    _form("token", "hvs.", r"[\w-]{20,}"),
    _form("token", "EAA", r"[A-Za-z0-9]{60,}"),
    _form("token", "secret_", r"[A-Za-z0-9]{40,}", _has_digit),
    _form("token", "sl.", r"[\w-]{60,}"),
    _form("token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _Form("token", "AAAA", re.compile(r"(?<![\w%-])AAAA[\w%-]{7,}+:[\w-]{100,}"), _has_digit),
    _Form("token", "AAAA", re.compile(rf"(?<![\w%-])AAAA(?!{_PUBLIC_KEYS})[A-Za-z0-9%]{{61,}}"), _has_digit),
    _form("token", "mfa.", r"[\w-]{80,}"),
    _form("token", "dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    _form("token", "sha256~", r"[\w-]{43}"),
    _Form("token", "SSWS ", re.compile(r"(?<![A-Za-z0-9])SSWS[ ]([\w-]{20,})"), _random),
    *(_form("token", one, r"[\w-]{20,}(?:[.=][\w.=-]*\w)?", _random) for one in _VENDORS),
    _Form("token", ".atlasv1.", re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"), _any),
    _Form("token", ":AA", re.compile(r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[\w-]{32,}"), _any),
    _form("private_key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
    _Form("azure_key", "Key=", re.compile(r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{20,}={0,2})"), _any),
    _Form("token", "X-Amz-Signature=", re.compile(r"X-Amz-Signature=([0-9a-f]{64})(?![0-9A-Za-z])"), _any),
    _Form("azure_key", "sig=", re.compile(r"[?&]sig=([A-Za-z0-9%+/=_-]{30,})"), _any),
    _Form("azure_key", "Q~", re.compile(r"(?<![\w~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,}"), _any),
    *(
        _Form("azure_key", one, re.compile(
            rf"(?<![\w+/-])[\w+/-]{{32,}}{re.escape(one)}[\w+/-]{{4,}}={{0,2}}"), _has_digit
        )
        for one in ("AzFu", "AzSe", "+ASt", "ACDb", "AZDO", "+ASb", "+AEh", "+ARm")
    ),
)  # fmt: skip

_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_RUN = re.compile(r"[\w-]+", re.ASCII)
_BEARER = re.compile(r"bearer[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE)
_BASIC = re.compile(r"authorization[\"'\\]{0,4}[ \t]?[:=][ \t]?[\"'\\]{0,4}basic[ \t]{1,4}([A-Za-z0-9+/=_-]{6,})", re.I)
_AUTHORIZATION = re.compile(
    r"authorization[\"'\\]{0,4}[ \t]?[:=][ \t]?[\"'\\]{0,4}(?:[a-z-]{2,20}[ \t]{1,4})?([\w.~+/=-]{16,})", re.IGNORECASE
)
_DISCORD = re.compile(r"[MNO](?<![\w.-].)[\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}(?![\w-])")
_URL_RUN = re.compile(r"[^\s\"'<>`]*")
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|$)")
_OWNER = re.compile(r"https?://([A-Za-z0-9_-]{20,})(?::(?:x-oauth-basic)?)?@(?![\w.-]*\bsentry\b)", re.IGNORECASE)
"""A token that stands in an address as the user, without a password; Sentry's keys stand in web pages."""
NO_PASSWORD = re.compile(
    r"(?:<.*|\$.*|%.*%|\{.*|\[.*|[*x.]+|pass(?:word|wd)?|pwd?|secret|token|your[_-]?\w*|x-oauth-basic|\[redacted.*)",
    re.IGNORECASE,
)


def _of(form: _Form, text: str, _: str) -> Iterator[Span]:
    if form.hint in text:
        for match in form.pattern.finditer(text):
            if form.accept(match[0]):
                yield Span(form.kind, *match.span(form.pattern.groups))


def _aws_secrets(text: str, _: str) -> Iterator[Span]:
    if "AKIA" in text or "ASIA" in text:
        yield from (Span("aws_key", *match.span()) for match in _AWS_SECRET.finditer(text) if _mixed(match[0]))


def _bearers(text: str, _: str) -> Iterator[Span]:
    yield from (Span("bearer_token", *one.span(1)) for one in _BEARER.finditer(text) if _has_digit(one[1]))


def _headers(text: str, _: str) -> Iterator[Span]:
    """Yield what a header of authorisation says behind its scheme, or without one."""
    for match in _BASIC.finditer(text):
        yield Span("password", *match.span(1))
    for match in _AUTHORIZATION.finditer(text):
        if _random(match[1]):
            yield Span("token", *match.span(1))


def _bots(text: str, _: str) -> Iterator[Span]:
    yield from (Span("token", *match.span()) for match in _DISCORD.finditer(text) if _has_digit(match[0]))


def _tokens(text: str, _: str) -> Iterator[Span]:
    """Yield JSON web tokens: a header, a payload, and a signature that may be missing."""
    at = text.find("eyJ")
    while at >= 0:
        parts, end = 0, at
        while parts < 5 and (run := _RUN.match(text, end)) is not None:
            parts, end = parts + 1, run.end()
            if text[end : end + 1] != ".":
                break
            end += 1
        if parts >= 2 and end - at > 30:
            yield Span("jwt", at, end - (text[end - 1] == "."))
        at = text.find("eyJ", max(end, at + 3))


def _addresses(text: str, _: str) -> Iterator[Span]:
    """Yield the passwords of addresses with a user: up to the last ``@`` of the address, whatever is in between. Where
    there is none, a user that is as random as a token."""
    for owner in _OWNER.finditer(text):
        if _random(owner[1]) and len(_DIGIT.findall(owner[1])) >= 3:
            yield Span("token", *owner.span(1))
    at = text.find("://")
    while at >= 0:
        following = text.find("://", at + 3)
        run = _URL_RUN.match(text, at + 3, len(text) if following < 0 else following)
        end = at + 3 if run is None else run.end()
        colon, last = text.find(":", at + 3, end), text.rfind("@", at + 3, end)
        if 0 <= colon < last - 1 and not {*"/?#@"} & {*text[at + 3 : colon]}:
            value = text[colon + 1 : last]
            marked = value.startswith("x-oauth-basic@")
            if not marked and not _PORT.match(value) and not NO_PASSWORD.fullmatch(value):
                yield Span("password", colon + 1, last)
        at = following


SEARCHES = (
    *(Search((form.hint.lower(),), partial(_of, form), LONG) for form in _FORMS),
    Search(("akia", "asia"), _aws_secrets, LONG),
    Search(("eyj",), _tokens, LONG),
    Search(("bearer",), _bearers, LONG),
    Search(("authorization",), _headers),
    Search((), _bots, LONGER),
    Search(("://",), _addresses),
)
