"""Secrets that are told by name: ``password=…``, ``"api_key": "…"``, ``--token …``, "my password is: …", "PIN 1234".

A name is looked for by a literal part of it; what stands behind is then read in place, so that the cost is that of the
names that occur. Between name and value everything is bounded; a value has no greatest length.
"""

import re
from collections.abc import Iterator
from functools import partial

from memsluice.gate.sensitive import plausible
from memsluice.gate.sensitive.hints import Search, matches
from memsluice.gate.sensitive.names import ASIAN, NAMES, Name
from memsluice.gate.sensitive.span import Span

_LOOKED_AT = 256
"""Characters of a value by which it is judged: what was judged a secret is then followed to its end."""


_ASIAN_VALUE = re.compile(
    r"(?:[ ](?=[!-~]{4,}+[ ]?है)|"
    r"[ \u3000]?(?:是|为|為|は|が|는|은|가|이|:|：|=|＝|→)[ \u3000]?[:：]?[ \u3000]?[「『“\"']?)([!-~]{4,})"
)
_OTP_SAID = r"[ -]?(?:[Cc]ode|\d{6,8}(?!\d)|[Nn]um)|[^\n.0-9]{0,60}?(?: (?:is|was|ist|lautet|est|es|é|è|är|er) |[:=])"
"""What stands between "OTP" and its digits: a bare number behind it is that of a release of Erlang, as "OTP 26001"."""
_QUOTED = r"[\"'\\]{0,2}[ \t]?[:=][ \t]?[\"'\\]{0,2}"
"""What stands between a name and its value in JSON and in assignments."""
_PIN = re.compile(
    r"(?<![A-Za-z])(?<![Pp]ostal )(?:PIN|[Pp]in|PUK|(?:OTP|[Oo]tp)(?=" + _OTP_SAID + r")"
    r"|[Gg]eheimzahl|[Kk]od PIN|NIP)"
    r"(?:[ -]?(?:[Cc]ode|[Nn]umber|[Nn]ummer|[Nn]umm?er))?"
    r"(?: (?:for|to|of|on|für|pour|para|per|zum|vom|de|del) [^\n.:=0-9]{1,40}?)?"
    r"(?: (?:is|was|ist|lautet|est|es|é|è|är|er|to|(?:was |is )?(?:set"
    rf"|changed) to))?(?: now)?(?:[ \t]?[:=]?[ \t]{{0,2}}|{_QUOTED})([0-9]{{4,8}})(?![\w-]|"
    r" (?:of|on) (?:the|a|an|this|that|each|your|its) (?:[\w-]{1,16} ){0,2}"
    r"(?:connector|plug|socket|chip|board|header|arduino|controller|cable|module|sensor|ic)\b)|"
    rf"(?<![A-Za-z])(?:CVV2?|CVC2?|cvv2?|cvc2?){_QUOTED}([0-9]{{3,4}})(?![\w-])|"
    r"(?<![A-Za-z])(?:CVV2?|CVC2?|CID|cvv2?|cvc2?|csc|CSC|cid)(?: (?:is|code|number"
    r"|ist))?(?: is)?[ \t]?[:=]?[ \t]?([0-9]{3,4})(?![\w-])"
)
_PIN_HINTS = ("pin", "puk", "otp", "geheimzahl", "nip", "cvv", "cvc", "cid", "csc")
_LOCK = re.compile(
    r"(?:door|gate|alarm|access|entry|unlock|safe|garage|lock(?:box|er)?|keypad|building|verification|security|one-time|otp|2fa|mfa|sms"
    r"|passcode|t(?:ü|ue)r|zugangs|sicherheits|bestätigungs|vault|phone|device|sim|login"
    r"|auth\w{0,12})(?:[ -]?|(?<!phone)(?<!device)_)"
    r"(?:code|combination|combo|passcode|kode)(?:s)?(?![a-z]| of (?:conduct|practice|ethics))"
    r"(?: (?:for|to|of|on|für) [^\n.:=0-9]{1,40}?)?(?: (?:is|was|ist|lautet))?(?: now)?"
    rf"(?:[ \t]?[:=]?[ \t]{{0,2}}|{_QUOTED})[#*]?"
    r"([0-9]{3}[ -][0-9]{3}(?![0-9])|[0-9]{3,8}(?:[#*]|(?:-[0-9]{1,3}){2})?|[0-9]{1,2}(?:-[0-9]{1,2}){2})"
    r"(?![\w-]| edition)",
    re.IGNORECASE,
)
_LOCK_HINTS = ("code", "comb", "kode")
_SPARE_HINTS = ("backup", "recovery", "rescue", "one-time")
_BEFORE_CODE, _BEHIND_CODE = 18, 100

_QUOTES = "\"'`"
_CLOSERS = "[\"'\\\\`\\])*_”’]{0,4}"
_OF = "for|to|of|on|at|in|für|fürs|zum|zur|vom|von|du|de|del|della|di|da|do|para|pour|voor|van|till?|k|ke|od|от|для"
_SOME = r"\s(?:" + _OF + r")\s(?:[^\n.:=;!?\"']|\.(?=\w)|'(?=s\s)){1,50}?"
"""What it is the password of."""


def _after(verbs: str) -> re.Pattern[str]:
    """Return what stands between a name and its value, where also these ``verbs`` say that a value follows."""
    return re.compile(
        r"[0-9]{0,3}" + _CLOSERS + r"(?:[ \t]{0,4}\([^()\n]{1,40}\))?(?:"
        rf"(?:{_SOME}(?!-(?!>)))?[ \t]{{0,4}}"
        r"(?P<sep>:=|=>|===?|=|->|-|→|：|＝|:(?!//)|\||(?<=[\"'`]),(?=[ ]?[\"'`]))"
        r"[*_]{0,3}[ \t]{0,8}(?:\r?\n[ \t]{0,8})?[*_]{0,3}"
        r"|(?P<prose>(?:(?:" + _SOME + r"|,\s(?:which|that)\s[^\n.:=;!?\"']{1,50}?,)?\s{1,3}(?:"
        r"will\sbe|should\sbe|has\sbeen|is|was|are|remains|ist|war|lautet|est|était|es|era|será|está|é|è|luidt|это"
        r"|jest|är|là|adalah|ialah|olan|είναι|है|هي|היא|คือ|yra" + (f"|{verbs}" if verbs else "") + r")|['’]s)"
        r"(?:\s(?:now|still|just|simply|also|(?:re)?set\s(?:to|as)|(?:chang|updat)ed\sto|called|jetzt|nun|maintenant"
        r"|ahora|agora|nu|теперь)){0,2}(?P<colon>\s?:)?\s{1,3})"
        r"|(?P<dash>\s[-–—]\s)"
        r"|(?P<xml>>))",
        re.IGNORECASE,
    )


_AFTER = {verbs: _after(verbs) for verbs in {name.verbs for name in NAMES}}
_TO = re.compile(
    r"(?:\s(?:" + _OF + r")(?:\s(?!(?:and|then|access|login|entry|according|due|prior|next|connections?)\b)"
    r"[^\s,;:!?]{1,30}){1,4}?)?\sto\s{1,3}(?!(?:expire|comply|match|meet|satisfy|avoid|prevent|allow|include|contain|ensure)\s)",
    re.IGNORECASE,
)
"""What stands between a name and the value that it was changed to. "Access to", "and sent to", "to comply with" lead
to no value."""
_TICKET = re.compile(
    r"[A-Za-z]{2,}-[0-9]+|[0-9]+[A-Za-z]{2,12}[.,;:!?)]?(?:\Z|\s)|[a-z]+(?:[0-9]|\(|=|\.)(?![\w!@#$%])|.*[(=\[{<]"
)
"""What stands behind the name with a digit in it and is none: ``OPS-4411``, ``1Password``, ``field2``, a call."""
_RANDOM = re.compile(r"(?=[\w-]{0,30}[0-9])[\w-]{16,}[.,;:!?)]?\Z")
"""What may stand behind "api key" and a blank alone, and is no word of the sentence."""
_SPARE = re.compile(
    r"(?:backup|recovery|rescue|one-time)[ -]codes?(?: (?:are|is|for [^\n.:=0-9]{1,40}?))?[ \t]?[:=]?\s{0,3}"
    r"((?:(?=[A-Za-z-]{0,8}[0-9])[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,6}){0,4}(?:[,;]?\s{1,3}|,|(?![\w-]))){1,20})",
    re.IGNORECASE,
)
_CHANGED = re.compile(r"(?:chang|set|reset|updat|switch|rotat|renew)\w{0,4}\s(?:\S{1,20}\s){0,3}\Z", re.IGNORECASE)
_BEFORE = re.compile(
    r"(?:^|[\s(])[\"'`“]?([^\s\"'`“”(]{6,64})[\"'`”]?\s(?:is|was|as|ist|als|est|comme|es|como|é|è|come)\s"
    r"(?:the|my|our|your|his|her|their|das|mein|unser|le|mon|notre|la|mi|a|minha|il)\s(?:\w{1,15}[\s-]){0,2}\Z",
    re.IGNORECASE,
)
"""A value that stands before its name: "… is my password", "use … as the password for the router"."""
_AFTER_NAME = re.compile(r"\s{0,2}(?:[.,;!?)\n]|\Z|(?:and|" + _OF + r")\s)", re.IGNORECASE)
"""What follows a name that a value stands before: no further noun, as "password manager" has one."""
_LIST = re.compile(
    r"(?:passwords|passwörter|contraseñas|mots de passe|senhas|wachtwoorden)[*_]{0,2}[ \t]?:[*_]{0,2}"
    r"((?:[ \t]{0,4}\r?\n[ \t]{0,8}(?:[-*•][ \t]{1,3})?[^\s:=][^\n:=]{0,40}[:=][ \t]{1,3}\S[^\n]{0,256}){1,40})",
    re.IGNORECASE,
)
_LIST_HINTS = ("passw", "contrase", "mots de passe", "senhas", "wachtwoorden")
_ITEM = re.compile(r"[:=][ \t]{1,3}(\S+)[ \t\r]*$", re.MULTILINE)
_FLAG = re.compile(r"(?:^|[\s\"'\[,])--?[\w-]{0,28}\Z")
_ENVIRONMENT = re.compile(r"(?:^|[\s;\"'{,])[A-Z0-9_]{0,40}\Z")
_PAGING = re.compile(r"(?:page|paging|cursor|continuation|sync|next|eos|bos|pad|unk|mask)[_ -]?\Z", re.IGNORECASE)
_OPENER = re.compile(r"(?:[bBrRuUfF]{1,2}(?=[\"']))?(\\{0,4}[\"'`]|[“„«‘「『])")
_CLOSED = {"“": "”", "„": "“", "«": "»", "‘": "’", "「": "」", "『": "』"}
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in _QUOTES}
_SOLID = re.compile(r"\S*")
_CUT = re.compile(
    r"[\"'`\\]{1,3}(?=[\s,;:)\]}>]|\Z)|</|<br|&(?=[\w.-]{1,40}=)|[,;](?=\s?[\"']?[\w.-]{1,40}[\"']?\s?[:=])|\\n"
)
_NEXT_PAIR = "&"
"""What divides the pairs of a query: a sign like any other where no equals sign stands before the value."""
_NEXT_ITEM = re.compile(r"[\"'`]\s{0,20},\s{0,40}[\"'`]")
_BRACKET = re.compile(r"[\[\](){}]")
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}[ ]?[+/|,][ ]?\S")
"""An address that something else stands behind, which is the password then."""
_BEHIND_ADDRESS = 4
_SENTENCE_END = re.compile(r"[.,;!?]?(?:[ \t]*(?:\r?\n|\Z)|[.;!?](?:\s|\Z))")
_PRESENT = frozenset(re.findall(r"\S+", "is now still ist est es é è lautet luidt är er jest jetzt ahora agora nu to"))
"""Verbs, and what follows them, behind which a word can be the value itself."""
_FIRST_PART = re.compile(r"[^\W\d_]{5,}(?=,? (?:and|but|for|if|in case|please|und|aber|et|y|e) |,|[ ]\()")
"""One word that its sentence goes on behind."""
_INSIDE_VALUE = re.compile(r"[.;!?](?=[^\s\"'”])")
"""A sign that ends no sentence: ``Tulip!2019``."""
_REST_OF_LINE = re.compile(r"[^\n.;!?\"]{1,256}")


def _named(name: Name, text: str, lower: str) -> Iterator[Span]:
    """Yield the values behind a name."""
    at = lower.find(name.hint)
    while at >= 0:
        whole = name.whole.match(text, at)
        value = None if whole is None else _value(text, at, whole.end(), name)
        if value is not None:
            yield Span(name.kind, *value)
        elif whole is not None and name.password and (before := _before(text, at, whole.end())) is not None:
            yield Span(name.kind, *before)
        at = lower.find(name.hint, at + len(name.hint) if value is None else value[1])


def _before(text: str, at: int, end: int) -> tuple[int, int] | None:
    """Return a value that the sentence tells before the name."""
    match = _BEFORE.search(text, max(0, at - 100), at)
    if match is None or not _AFTER_NAME.match(text, end):
        return None
    value = match[1]
    if "." in value.partition("@")[2] or _TICKET.match(value) or not plausible.mixed(value):
        return None
    return match.span(1) if plausible.password(value, alone=False, quoted=False, assigned=False) else None


def _lists(text: str, lower: str) -> Iterator[Span]:
    """Yield the values of a list under "passwords:", one of a line."""
    for listed in matches(_LIST, text, lower, _LIST_HINTS):
        for item in _ITEM.finditer(text, *listed.span(1)):
            if plausible.mixed(item[1]) and plausible.password(item[1], alone=False, quoted=False, assigned=False):
                yield Span("password", *item.span(1))


def _pins(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_PIN, text, lower, _PIN_HINTS):
        yield Span("pin", *match.span(match.lastindex or 0))


def _locks(text: str, lower: str) -> Iterator[Span]:
    """Yield codes of doors and the like: what they are of stands before "code"."""
    for word in _LOCK_HINTS:
        at = lower.find(word)
        while at >= 0:
            match = _LOCK.search(text, max(0, at - _BEFORE_CODE), at + _BEHIND_CODE)
            if match is not None:
                yield Span("pin", *match.span(1))
            at = lower.find(word, at + len(word))


def _spares(text: str, lower: str) -> Iterator[Span]:
    for match in matches(_SPARE, text, lower, _SPARE_HINTS):
        yield Span("pin", match.start(1), match.start(1) + len(match[1].rstrip(" \t\r\n,;")))


def _asian(text: str, _: str) -> Iterator[Span]:
    """Yield what stands behind a name in a script without blanks: the value is what is ASCII."""
    for name in ASIAN:
        at = text.find(name)
        while at >= 0:
            match = _ASIAN_VALUE.match(text, at + len(name))
            end = at + len(name)
            if match is not None:
                value = match[1][:_LOOKED_AT].rstrip("\"'.,;:)")
                alone = _SENTENCE_END.match(text, match.end()) is not None
                if plausible.password(value, alone=alone, quoted=False, assigned=False):
                    end = match.start(1) + len(match[1].rstrip("\"'.,;:)"))
                    yield Span("password", match.start(1), end)
            at = text.find(name, end)


def _value(text: str, at: int, end: int, name: Name) -> tuple[int, int] | None:
    """Return where the value of a name stands that begins at ``at``; None where there is none, or it is no secret."""
    if name.kind == "token" and _PAGING.search(text, max(0, at - 16), at):
        return None
    after = _AFTER[name.verbs].match(text, end)
    if after is None:
        return _unsaid(text, at, end, name)
    if after["xml"] is not None and "<" not in text[max(0, at - 40) : at]:
        return None
    start, prose = after.end(), after["prose"] is not None
    sep = after["sep"] or ""
    opener = _OPENER.match(text, start)
    if opener is not None:
        value = _quoted(text, opener, name, assigned="=" in sep)
        if value is None or sep != ",":
            return value
        return None if plausible.field(text[slice(*value)], listed=_listed(text, at, value[1])) else value
    if sep in ("==", "===") or (sep == "|" and not name.password):
        return None
    sure = sep in (":", "：") or after["colon"] is not None or after["xml"] is not None or sep == "|"
    sure = sure or (sep in ("=", "＝") and _configured(text, at, end))
    if name.password and prose:
        verb = after["prose"].split()[-1].lower() if after["prose"].split() else ""
        words = _words(text, start, name, colon=after["colon"] is not None, present=verb in _PRESENT)
        if words is not None:
            return words
    if sep == ":" and text[at:end].lower().endswith("phrase"):
        words = _words(text, start, name, colon=True, present=True)
        if words is not None:
            return words
    return _bare(text, start, name, sure=sure, assigned="=" in sep)


def _listed(text: str, at: int, end: int) -> bool:
    """Whether a quoted item that ends at ``end``, behind a name at ``at``, is one of a list: another quoted item
    follows, or a square bracket opened what both stand in."""
    if _NEXT_ITEM.match(text, end):
        return True
    closed = 0
    brackets: list[str] = _BRACKET.findall(text, max(0, at - _LOOKED_AT), at)
    for bracket in reversed(brackets):
        if bracket in ")]}":
            closed += 1
        elif closed:
            closed -= 1
        else:
            return bracket == "["
    return False


def _unsaid(text: str, at: int, end: int, name: Name) -> tuple[int, int] | None:
    """Return a value behind a blank alone: of a flag, or "changed the password to …"."""
    if text[end : end + 1] in (" ", "\t") and _FLAG.search(text, max(0, at - 34), at):
        opener = _OPENER.match(text, end + 1)
        if opener is not None:
            return _quoted(text, opener, name, assigned=True)
        return _bare(text, end + 1, name, sure=True, assigned=True)
    if name.password and name.word and text[end : end + 1] == " ":
        value = _SOLID.match(text, end + 1, end + 1 + _LOOKED_AT)
        if value is not None and _alone(value[0]):
            return _bare(text, end + 1, name, sure=False, assigned=False)
    if not name.password and text[end : end + 1] == " ":
        value = _SOLID.match(text, end + 1, end + 1 + _LOOKED_AT)
        if value is not None and _RANDOM.match(value[0]):
            return _bare(text, end + 1, name, sure=False, assigned=False)
    to = _TO.match(text, end)
    if to is not None and name.password and _CHANGED.search(text, max(0, at - 90), at):
        return _changed(text, to, name, several=text[end - 1] in "sS")
    return None


def _alone(value: str) -> bool:
    """Whether what stands behind a blank alone is neither a word nor the place where a password is kept or goes."""
    bare = value.rstrip(".,;:!?)")
    return plausible.mixed(bare) and not _TICKET.match(value) and not plausible.place(bare)


def _changed(text: str, to: re.Match[str], name: Name, *, several: bool) -> tuple[int, int] | None:
    """Return what a password was changed to: of ``several`` passwords no plain words, which are where they went."""
    opener = _OPENER.match(text, to.end())
    if opener is not None:
        return _quoted(text, opener, name, assigned=False)
    solid = _SOLID.match(text, to.end(), to.end() + _LOOKED_AT)
    if solid is None or plausible.place(solid[0].rstrip(".,;:!?)")):
        return None
    words = None if several else _words(text, to.end(), name, colon=False, present=True)
    return words or _bare(text, to.end(), name, sure=False, assigned=False)


def _configured(text: str, at: int, end: int) -> bool:
    """Whether ``NAME=`` is that of a file of settings, of an environment or of a command line, and not of code."""
    upper = text[at:end].isupper() and _ENVIRONMENT.search(text, max(0, at - 42), at) is not None
    flag = _FLAG.search(text, max(0, at - 34), at) is not None
    settings = text[end : end + 1] == "=" and (at == 0 or text[at - 1] in ";\n?&")
    return upper or flag or settings


def _quoted(text: str, opener: re.Match[str], name: Name, *, assigned: bool) -> tuple[int, int] | None:
    quote, start = opener[1], opener.end()
    if quote in _INSIDE:
        inside = _INSIDE[quote].match(text, start)
        end = start if inside is None else inside.end()
        closed = text[end : end + 1] == quote
    else:
        end = text.find(_CLOSED.get(quote, quote), start)
        closed = end >= 0
    if not closed:  # cut off
        return _bare(text, start, name, sure=False, assigned=assigned)
    value = text[start : min(end, start + _LOOKED_AT)]
    secret = (
        plausible.password(value, alone=False, quoted=True, assigned=assigned)
        if name.password
        else plausible.token(value, quoted=True)
    )
    return (start, end) if secret else None


def _bare(text: str, start: int, name: Name, *, sure: bool, assigned: bool) -> tuple[int, int] | None:
    """Return a value without quotes, to the next blank or to what divides it from the next pair."""
    end = _bare_end(text, start, min(len(text), start + _LOOKED_AT), assigned=assigned)
    if end == start or text[end : end + 1] == ":":
        return None
    value = text[start:end]
    if _ADDRESS.match(text, start, end + _BEHIND_ADDRESS):
        return None
    if name.password:
        alone = sure and _SENTENCE_END.match(text, end) is not None
        secret = plausible.password(value, alone=alone, quoted=False, assigned=assigned)
    else:
        secret = plausible.token(value, quoted=False)
    return (start, _bare_end(text, start, len(text), assigned=assigned)) if secret else None


def _bare_end(text: str, start: int, limit: int, *, assigned: bool) -> int:
    """Return where a value ends: what closes or divides behind it is none of it."""
    solid = _SOLID.match(text, start, limit)
    end = start if solid is None else solid.end()
    cut = _CUT.search(text, start, min(len(text), end + 44))
    while cut is not None and cut[0] == _NEXT_PAIR and not assigned:
        cut = _CUT.search(text, cut.end(), min(len(text), end + 44))
    if cut is not None:
        end = min(end, cut.start())
    while end > start and (
        text[end - 1] in ".,;:\"'" or (text[end - 1] in _PAIRS and text.find(_PAIRS[text[end - 1]], start, end) < 0)
    ):
        end -= 1
    return end


def _words(text: str, start: int, name: Name, *, colon: bool, present: bool) -> tuple[int, int] | None:
    """Return a password of plain words, to the end of its sentence: many, or a few that say nothing of a password.

    Many behind a verb are a sentence mostly: in the languages where those are told apart they may be a password.
    """
    line = _REST_OF_LINE.match(text, start)
    if line is not None and _INSIDE_VALUE.match(text, line.end()):
        return None
    value = "" if line is None else line[0].rstrip(" ,")
    several = value.count(" ") >= (1 if colon else 3) and (colon or name.word)
    told = several and plausible.phrase(value, least=2) and (colon or not plausible.sentence(value))
    told = told or (name.word and present and plausible.told(value))
    if not told and name.word and present and line is not None:
        part = _FIRST_PART.match(value)
        if part is not None and plausible.told(part[0]):
            return start, start + part.end()
    return (start, start + len(value)) if told else None


SEARCHES = (
    *(Search((name.hint,), partial(_named, name)) for name in NAMES),
    Search(_PIN_HINTS, _pins),
    Search(_LOCK_HINTS, _locks),
    Search(_SPARE_HINTS, _spares),
    Search(_LIST_HINTS, _lists),
    Search(ASIAN, _asian),
)
