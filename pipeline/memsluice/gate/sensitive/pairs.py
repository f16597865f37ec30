"""Secrets that stand beside a user or in a command: ``curl -u bob:…``, ``mysql -p…``, "login admin / …", cookies."""

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial

from memsluice.gate.sensitive import plausible, told
from memsluice.gate.sensitive.hints import Search, Searches, matches
from memsluice.gate.sensitive.providers import NO_PASSWORD
from memsluice.gate.sensitive.span import Span

_CURL = re.compile(
    r"curl\b[^\n|;]{0,200}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{1,2}[\"']?[^\s:\"']{1,64}:([^\s\"']{3,})"
)
_OPTION = re.compile(
    r"(?:\bsshpass\b[ \t]{1,2}-p[ \t]?|\bredis-cli\b[^\n|;]{0,100}?[ \t](?:-a|--pass)[ \t]{1,2}"
    r"|\bldap\w+[^\n|;]{0,200}?[ \t]-w[ \t]"
    r"|\b(?:mysql(?:dump|admin)?|mariadb)\b[^\n|;]{0,100}?[ \t]-p|\bmongo(?:sh|dump)?\b[^\n|;]{0,100}?[ \t]-p[ \t]?"
    r"|\b(?:docker|podman|helm|az|oc|cf|nerdctl|skopeo"
    r"|argocd)[ \t][^\n|;]{0,60}?login\b[^\n|;]{0,120}?[ \t]-p[ \t]{1,2}"
    r"|\bunzip\b[^\n|;]{0,60}?[ \t]-P[ \t]{1,2}"
    r"|\bnet use\b[^\n|;]{0,120}?/user:\S+[ \t]{1,2})[\"']?([^\s\"'|;-][^\s\"'|;]{3,})"
)
_LOGIN = re.compile(
    r"(?<![A-Za-z])(?:log[ -]?ins?|credentials?|creds?|sign[ -]?in|zugangsdaten|anmeldedaten|anmeldung|zugang"
    r"|identifiants?"
    r"|credenciales|credenciais|credenziali|inloggegevens|accesos?|account)"
    r"(?:[ ](?:details?|data|info|for|to|für|zum|pour|para|per|voor)\b[^\n.:=]{0,30}?)?(?:[ ](?:is|are|with|as"
    r"|using|sind|ist|mit|sont|son))?"
    r"[ \t]?[:=]?[ \t]{1,3}[\"'`]?(?P<user>[\w.@+-]{2,64})[\"'`]?(?:[ ]?[/|][ ]?|:[ ]?|[ ](?:and|with|und|mit"
    r"|et|y|e)[ ])[\"'`]?"
    r"(?P<value>[^\s/\"'`]{5,})",
    re.IGNORECASE,
)
_USER = re.compile(
    r"(?<![A-Za-z])(?:user(?:[ _-]?name)?|log[ -]?in|benutzer(?:name)?|usuario|utilisateur|utente|gebruiker"
    r"|account|e-?mail)(?:[ \t]?[:=]|[ ](?:is|ist|est|es|é|è))?[ \t]{1,2}"
    r"[\"'`]?[\w.@+-]{1,64}[\"'`]?[ ,;/]{1,3}(?:and |und |et |y |e )?(?:the )?"
    r"(?:pass(?:word|wd|wort|phrase)?|pwd?|kennwort|contraseña|mot de passe|senha"
    r"|wachtwoord)(?:[ ](?:is|ist|est|es|é|è)(?=[ ]))?[ \t]{1,2}[\"'`]?([^\s\"'`:=]{4,})",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"(?<![A-Za-z])(?:user(?:[ _-]?name)?|log[ -]?in|e-?mail|benutzer(?:name)?|usuario|utilisateur|account)"
    r"[ ]?(?:[/+&|,]|and|und|et|y)[ ]?(?:pass(?:word|wd|wort|phrase)?|pwd?|pw|kennwort|contraseña|mot de passe)"
    r"[ ]?(?:[:=]|[-–—]|is|are|ist)[ ]{0,2}[\"'`]?[\w.@+-]{1,64}[\"'`]?[ ]?[/+&|,:][ ]?[\"'`]?([^\s\"'`/|]{5,})",
    re.IGNORECASE,
)
"""Both names, and both values behind them: "login/password: bo / …"."""
_CALL = re.compile(
    r"(?:auth|login|credentials?)\w{0,12}[\"']?(?:[ ]?[:=])?[ ]?\([ ]?[\"'][^\"'\n]{1,64}[\"'],[ ]?"
    r"[\"']([^\"'\n]{6,})[\"'][ ]?\)",
    re.IGNORECASE,
)
"""A user and a password in a call: ``auth=("bob", "…")``, ``smtp.login('bob', '…')``."""
_AUTH = re.compile(r"auth[\"'\\]{0,2}\s{0,4}[:=]\s{0,4}[\"'\\]{0,2}([A-Za-z0-9+/_-]{8,}={0,2})", re.IGNORECASE)
"""A user and a password as Docker and npm keep them: in Base64, with a colon between."""
_CALL_HINTS = ("auth", "login", "credential")
_ORACLE = re.compile(
    r"(?:jdbc:oracle:\w{2,5}:|(?:sqlplus|sqlldr|expdp|impdp)[ \t](?:-\w+[ \t]){0,3})[\"']?"
    r"[\w$#.-]{1,64}/[\"']?([^\s\"'@/]{3,256})[\"']?@",
    re.IGNORECASE,
)
_ORACLE_HINTS = ("jdbc:oracle", "sqlplus", "sqlldr", "expdp", "impdp")
_PGPASS = re.compile(r":5432:[\w*-]{1,64}:[\w.*@-]{1,64}:([^\s:]{4,256})")
"""A line of PostgreSQL's password file."""
_WIFI = re.compile(r"WIFI:(?:[A-OQ-Z]:(?:[^;\\\n]|\\.){0,200};){0,6}P:((?:[^;\\\n]|\\.){4,200})", re.IGNORECASE)
"""What the codes hold by which phones join a network."""
_COOKIE = re.compile(r"(?:^|[\s\"'-])(?:set-)?cookie[\"']?[ \t]?[:=][ \t]?[\"']?([^\n\"']{8,4096})", re.IGNORECASE)
_CRUMB = re.compile(r"[\w.-]{1,64}=([^\s;,]{16,})")
_SESSION = re.compile(
    r"(?<![A-Za-z])(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|_?session_?id|laravel_session|_gh_sess|sessid|sid)"
    r"=([\w%.~+/:!-]{20,512}={0,2})",
    re.IGNORECASE,
)
"""A value holds no equals sign but at its end: else each of many in a row would be read to the end of all."""
_RECORD = re.compile(
    r"(?:name|key|type|label|variable)[\"']?\s{0,2}[:=]\s{0,2}[\"'](?P<name>[^\"'\n]{2,64})[\"'][^{}<>]{0,120}?"
    r"\bvalue[\"']?\s{0,2}[:=]\s{0,2}[\"'](?P<value>[^\"'\n]{3,1024})[\"']",
    re.IGNORECASE,
)
"""A record that has a name and its value apart: ``{"name": "DB_PASSWORD", "value": "…"}``, a form's field."""
_RECORD_HINTS = ("name", "key", "type", "label", "variable")
_TOLD = Searches(told.SEARCHES)
_IDENTIFIER = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_COMMANDS = (
    "curl", "sshpass", "redis-cli", "ldap", "mysql", "mariadb", "mongo", "docker", "podman", "helm", "az ", "oc ",
    "cf ",
    "nerdctl", "skopeo", "argocd", "unzip", "net use",
)  # fmt: skip
_LOGIN_HINTS = (
    "login", "log in", "log-in", "cred", "sign in", "sign-in", "zugang", "anmeld", "identifiant", "acceso",
    "inloggegevens",
    "account",
)  # fmt: skip
_USER_HINTS = (
    "user", "login", "log in", "log-in", "benutzer", "usuario", "utilisateur", "utente", "gebruiker", "account",
    "email",
    "e-mail",
)  # fmt: skip
_SESSION_HINTS = (
    "phpsess",
    "jsess",
    "asp.net_s",
    "connect.sid",
    "session",
    "_session",
    "laravel_s",
    "_gh_sess",
    "sessid",
    "sid=",
)
_WEAK = frozenset(["admin", "root", "user", "test", "guest", "administrator", "postgres", "pi", "demo"])


def _commands(text: str, lower: str) -> Iterator[Span]:
    for pattern in (_CURL, _OPTION):
        for match in matches(pattern, text, lower, _COMMANDS):
            value = match[1].rstrip(").,")
            if not NO_PASSWORD.fullmatch(value) and not plausible.placeholder(value):
                yield Span("password", match.start(1), match.start(1) + len(value))


def _logins(hint: str, text: str, lower: str) -> Iterator[Span]:
    for match in matches(_LOGIN, text, lower, (hint,)):
        value = match["value"].rstrip(".,;:)\"'")
        shipped = match["user"].lower() in _WEAK and value.lower() in _WEAK
        if shipped or (plausible.mixed(value) and plausible.password(value, alone=False, quoted=False, assigned=False)):
            yield Span("password", match.start("value"), match.start("value") + len(value))


def _users(hint: str, text: str, lower: str) -> Iterator[Span]:
    for match in matches(_USER, text, lower, (hint,)):
        value = match[1].rstrip(".,;:)")
        if plausible.mixed(value) and plausible.password(value, alone=False, quoted=False, assigned=False):
            yield Span("password", match.start(1), match.start(1) + len(value))


def _both(hint: str, text: str, lower: str) -> Iterator[Span]:
    for match in matches(_BOTH, text, lower, (hint,)):
        value = match[1].rstrip(".,;:)")
        if plausible.mixed(value) and plausible.password(value, alone=True, quoted=False, assigned=False):
            yield Span("password", match.start(1), match.start(1) + len(value))


def _calls(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_CALL, text, lower, _CALL_HINTS):
        value = match[1]
        if plausible.mixed(value) and plausible.password(value, alone=False, quoted=True, assigned=False):
            yield Span("password", *match.span(1))


def _pgpass(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_PGPASS, text, lower, (":5432:",)):
        value = match[1].rstrip(".,;)\"'")
        if plausible.password(value, alone=True, quoted=False, assigned=False):
            yield Span("password", match.start(1), match.start(1) + len(value))


def _written(pattern: re.Pattern[str], hints: tuple[str, ...], text: str, lower: str) -> Iterator[Span]:
    """Yield the passwords of a form that nothing else has."""
    for match in matches(pattern, text, lower, hints):
        if not NO_PASSWORD.fullmatch(match[1]):
            yield Span("password", *match.span(1))


def _no_value(password: str) -> bool:
    return NO_PASSWORD.fullmatch(password) is not None or any(letter.isspace() for letter in password)


def _kept(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_AUTH, text, lower, ("auth",)):
        try:
            inner = b64decode(match[1] + "=" * (-len(match[1]) % 4), altchars=b"-_", validate=True).decode()
        except ValueError:
            continue
        user, _, password = inner.rstrip("\r\n").partition(":")
        if user and password and f"{user}{password}".isprintable() and not _no_value(password):
            yield Span("password", *match.span(1))


def _records(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_RECORD, text, lower, _RECORD_HINTS):
        said, first = f'{match["name"]}: "{match["value"]}"', match.start("value") - len(match["name"]) - 3
        small = said.lower()
        for one in _TOLD.of(said, small) if len(small) == len(said) else ():
            if one.start + first >= match.start("value"):
                yield Span(one.kind, one.start + first, one.end + first)


def _cookies(text: str, _: str) -> Iterator[Span]:
    for header in _COOKIE.finditer(text):
        for crumb in _CRUMB.finditer(text, header.start(1), header.end(1)):
            if plausible.token(crumb[1], quoted=True) and not _IDENTIFIER.fullmatch(crumb[1]):
                yield Span("cookie", *crumb.span(1))


def _sessions(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_SESSION, text, lower, _SESSION_HINTS):
        if plausible.token(match[1], quoted=True) and not _IDENTIFIER.fullmatch(match[1]):
            yield Span("cookie", *match.span(1))


SEARCHES = (
    Search(_COMMANDS, _commands),
    *(Search((hint,), partial(_logins, hint)) for hint in _LOGIN_HINTS),
    *(Search((hint,), partial(_users, hint)) for hint in _USER_HINTS),
    *(Search((hint,), partial(_both, hint)) for hint in _USER_HINTS),
    Search(_CALL_HINTS, _calls),
    Search(_ORACLE_HINTS, partial(_written, _ORACLE, _ORACLE_HINTS)),
    Search((":5432:",), _pgpass),
    Search(("wifi:",), partial(_written, _WIFI, ("wifi:",))),
    Search(("auth",), _kept),
    Search(("value",), _records),
    Search(("cookie",), _cookies),
    Search(_SESSION_HINTS, _sessions),
)
