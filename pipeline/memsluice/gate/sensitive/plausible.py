"""Whether what stands behind "password:" or "token =" is a secret, or a word, a placeholder, a piece of code.

Words that say something about a secret are of letters alone; a secret mostly has a digit, a sign or changing case. What
is of letters alone counts only where its place says that it is a value.
"""

import re
from itertools import pairwise

_PLACEHOLDER = re.compile(
    r"(?:[*•●·.xX_#?\-]+|<.*|\$.*|%.*%|\{.*|\[.*|\(.*|@[A-Za-z_].*"
    r"|(?:your|my|the|some|any|insert|enter|replace|change|add|paste|put)[_ -].*|.*[_-]here|changeme|example.*|dummy.*"
    r"|placeholder.*|redacted.*|sample.*|todo.*|x{3,}.*|\.\.\.)",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(
    r"(?:await\s|new\s|!?[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*[(\[].*|&?\*?[A-Za-z_$][\w$]*\[.*)",
    re.DOTALL,
)
_MEMBER = re.compile(r"[A-Za-z_$][A-Za-z_$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$]+)+")
_PATH = re.compile(
    r"(?:~|\.{1,2})?/(?:[a-z._-]+/)*[a-z0-9._-]+|[A-Za-z]:\\.*|[a-z][a-z0-9+.-]*://.*|sha(?:1|256|512)[:-].*"
)
_PLACE = re.compile(
    r"[^\s@]+@[\w-]+(?:\.[\w-]+)+|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}(?:[:/].*)?"
    r"|(?:[\w.~-]*/)*(?:\.[a-z][a-z.-]*|[\w.~-]*\.(?:xlsx?|docx?|pdf|txt|csv|tsv|jsonl?|ya?ml|toml|ini|cfg|conf|env"
    r"|properties|xml|html?|md|py|[jt]s|sh|sql|kdbx?|zip|gz|tar|[jp]ks|p12|pem|key|log|png|jpe?g))",
    re.ASCII,
)
"""An e-mail address, the name of a host, with what of an address follows it, or a file by its ending."""
_NAMING = re.compile(
    r"pass|pwd|secret|token|key|credential|contrase|senha|wachtwoord|kennwort|clave|парол|auth|user|email|field|param",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+(?:[_'’][^\W\d_]+)*")
_HYPHENED = re.compile(r"[^\W\d_]+(?:[-/][^\W\d_]+)+")
_COUNTED = re.compile(
    r"[0-9]+(?:[-/][A-Za-z]+)+|(?:[0-9]+[.,x–-])*[0-9]{1,3}(?:%|st|nd|rd|th|x|h|d|s|ms|min|[kmg]b|bits?|chars?)?", re.I
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{1,2}(?:-[0-9]{1,2}.*)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}|[0-9]{1,2}:[0-9]{2}.*"
)
_TECHNICAL = re.compile(
    r"(?:sha|aes|utf|rsa|md|des|ecdsa|ed|hs|rs|es|oauth|base|erc|bep|tls|ssl|http|sql|windows|office|bcrypt|argon|scrypt"
    r"|pbkdf|2fa|mfa|totp|iso|rfc|v)[-/ ]?[0-9]{0,5}[a-z]{0,3}(?:[-/].*)?",
    re.IGNORECASE,
)
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]+(?:[-_ ./][A-Za-z]+)*[-_ ./#]?[0-9]{1,4}")
_SNAKE_NUMBER = re.compile(r"[A-Za-z]+_[A-Za-z_]*[0-9]{0,2}|[a-z]+[0-9]")
_FIELD = re.compile(r"[A-Za-z]?[a-z]*[0-9]?(?:_[a-z]+[0-9]{0,2}|_[0-9]{1,2})*|[A-Z]+[0-9]?(?:_[A-Z0-9]+)*")
_SAID = frozenset(
    re.findall(
        r"\S+",
        "a an the in on at of to by for with from and or not no is be it as if any all none null nil true false "
        "undefined required optional string str text bool boolean int integer number bytes char varchar type "
        "value data input output hidden visible masked empty blank missing invalid valid incorrect correct wrong "
        "unknown unset set changed expired reset updated stored saved hashed encrypted protected secure secured "
        "strong weak safe same different new old forgotten lost compromised leaked rotated revoked disabled "
        "enabled default defaults basic bearer yes ok okay needed mandatory sensitive confidential private "
        "public available below above here there see now later today yesterday tomorrow please must should can "
        "will may never always only also your my his her their our this that you we they unchanged accepted "
        "rejected denied failed failure success error warning stay keep ask tell erforderlich geändert "
        "abgelaufen falsch richtig vergessen requis obligatoire oublié changé requerida obligatoria olvidada "
        "cambiada obrigatória alterada vereist verplicht gewijzigd",
    )
)

_WORDS_OF_PHRASES = frozenset(
    {"correct", "wrong", "strong", "weak", "safe", "different", "new", "old", "blank", "empty"}
)
"""Of the words above those that passphrases have."""


_OF_SENTENCES = frozenset(
    re.findall(
        r"\S+",
        "der das dem des ein eine einer eines seine seiner seines ihrer meine meiner nicht noch "
        "immer und mit von für wie dasselbe "
        "le les du un une sa ses mon leur et avec toujours que qui même "
        "la el las una su sus del de y siempre mismo misma "
        "o uma os da sua seu meu minha e por letras sempre mesma mesmo "
        "il gli della dello di suo stessa stesso che "
        "het een zijn haar mijn nog steeds en zoals "
        "på från hennes och som namnet navnet fra",
    )
)
"""Words of other languages that sentences need and English passphrases hardly have: one of them makes a sentence."""

_OF_SENTENCES_OR_ENGLISH = frozenset(
    ("die", "pas", "los", "uno", "mi", "con", "um", "dos", "do", "com", "lo", "van", "met", "hans", "med")
)
"""Such words that are English words, names or short forms too: a passphrase may well have one of them, so that
one makes a sentence only at its start, and two do anywhere."""

_SAYING = frozenset(
    re.findall(
        r"\S+",
        "good bad best fine great nice easy hard simple complex complicated tricky difficult long short "
        "short-lived large "
        "small big huge tiny random secret hidden unique common shared personal plain plaintext cleartext "
        "useless broken "
        "outdated obsolete old ancient fresh brand super very too so quite pretty rather really just again "
        "twice once only "
        "case sensitive factory settings dead gone history ready empty live active inactive locked "
        "unlocked pending permanent temporary "
        "universal global local identical equal similar alphanumeric numeric ascii english german french text "
        "hash salt "
        "unsafe insecure vulnerable guessable predictable memorable mine yours ours theirs his hers enough half "
        "full more "
        "less than about around near between because since while when where what which who how why until unless after "
        "before during under over up down out off away back gone due then than through via per non also even "
        "ever never "
        "sometimes often usually normally currently definitely certainly probably possibly maybe perhaps apparently "
        "kept used sent made set given taken written known shown told held bound left lost found typed seen broken "
        "chosen hashed salted rotated longer shorter stronger weaker better worse older newer easier harder "
        "fair crazy silly "
        "funny weird odd strange stupid dumb terrible awful horrible annoying boring important essential "
        "critical crucial "
        "vital necessary optional standard normal typical regular special specific generic legacy static "
        "dynamic manual "
        "automatic automated external internal root admin user system device key free clear close open high low "
        "late early "
        "part one two three four five six seven eight nine ten zero both each every nothing something "
        "everything anything "
        "someone everyone nobody missing absent present elsewhere somewhere anywhere nowhere included excluded "
        "good-enough "
        "unavailable unreadable unusable private restricted limited overdue ours due stale dirty clean solid "
        "sound robust "
        "poor rubbish garbage trash nonsense gibberish impossible possible likely unlikely sure certain true secure "
        "nicht noch schon leer gleich dasselbe das der die den dem ein eine einen bekannt unbekannt sicher "
        "unsicher lang "
        "kurz zu sehr einfach schwierig schwach stark gültig ungültig pflicht notwendig nötig neu alt anders "
        "unser mein "
        "dein ihr sein wichtig privat geheim kompliziert identisch immer nie hier dort jetzt nun wieder weg "
        "incorrect faux fausse sûr sûre faible fort forte trop le la les un une différent différente valide "
        "invalide court "
        "courte simple unique identique toujours jamais pas très ici nouveau nouvelle ancien perdu expiré "
        "incorrecta correcta obligatoria segura insegura débil fuerte larga corta válida inválida necesaria muy "
        "demasiado "
        "secreta privada distinta igual única fácil difícil nueva vieja misma mismo una uno el lo los las "
        "siempre nunca "
        "incorreta correta forte fraca longa curta inválida necessária muito diferente nova velha mesma mesmo "
        "um uma os as "
        "errata sbagliata corretta scaduta sicura debole lunga corta troppo molto sempre mai una uno il gli "
        "verkeerd onjuist verlopen veilig onveilig zwak sterk te niet hetzelfde een het de altijd nooit nieuw oud "
        "fel felaktigt rätt svagt starkt samma inte forkert rigtig ikke det den samme gammel svag stærk feil riktig "
        "udløbet utløpt utgånget ændret endret ändrat nulstillet påkrævet påkrevd krävs",
    )
)
"""Words that are said of a password, behind a verb, in the languages whose names of it allow a plain word there."""
_ENDED = re.compile(
    r"(?:.{2,}(?:ed|ing|(?<!f)ly|able|ible|less|ful|ous|ive|ary|ory|ated|ised|ized|ité|ées?|ado|ada|ido|ida|oria|ata|uto|uta|eerd)|ge\w{2,}(?:t|en)|(?:ver|be|er|ent|zer|abge|ein|aus|un)\w{2,}(?:t|en))"
)
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"[0-9]")
_SIGN = re.compile(r"[!@#$%^&*+=?~_]")


def told(value: str) -> bool:
    """Whether one to three plain words behind "the password is" are the password, and nothing that is said of it."""
    words = value.split(" ")
    if not (len(words) <= 3 and len(words[0]) >= (5 if len(words) == 1 else 3)):
        return False
    several = len(words) > 1
    for word in words:
        lower = word.lower()
        known = lower in _SAYING or (lower in _SAID and not (several and lower in _WORDS_OF_PHRASES))
        if len(word) < 3 or not word.isalpha() or known or _NAMING.search(lower) or _ENDED.fullmatch(lower):
            return False
    return value.lower() not in ("correct", "wrong") and (len(words) != 2 or len(value) >= 8)


def mixed(value: str) -> bool:
    """Whether it has what no word has: a digit or a sign beside letters, in six characters or more."""
    letters = any(character.isalpha() for character in value)
    return len(value) >= 6 and letters and (any(map(str.isdigit, value)) or _SIGN.search(value) is not None)


def placeholder(value: str) -> bool:
    """Whether it stands for a value: stars, ``<…>``, ``${…}``, ``YOUR_TOKEN_HERE``."""
    return _PLACEHOLDER.fullmatch(value) is not None


def code(value: str) -> bool:
    """Whether it is code or a path where the value comes from: ``get_token()``, ``os.environ["PW"]``, ``a.b``."""
    found = _CODE.fullmatch(value) or _MEMBER.fullmatch(value) or _PATH.fullmatch(value)
    return found is not None


def place(value: str) -> bool:
    """Whether it is where a password goes, or lies, and not the password: an address, a host, a file."""
    return _PLACE.fullmatch(value) is not None or code(value)


def _of_letters(value: str) -> bool:
    return _LETTERS.fullmatch(value) is not None


def password(value: str, *, alone: bool, quoted: bool, assigned: bool) -> bool:
    """Whether it is a password. ``alone`` says that nothing but a value can stand in its place, ``quoted`` that quotes
    bound it, ``assigned`` that an equals sign stands before it, as in code."""
    if len(value) < 4 or placeholder(value) or (not quoted and code(value)):
        return False
    if value.lower() in _SAID or _COUNTED.fullmatch(value) or _DATE.fullmatch(value) or _TECHNICAL.fullmatch(value):
        return False
    if any(character.isspace() for character in value):
        return quoted and (phrase(value, least=2) or _made_up(value))
    if _of_letters(value):
        mine = not _NAMING.search(value) and len(value) >= 5
        return mine and (alone or (quoted and (assigned or len(value) >= 6)))
    if _HYPHENED.fullmatch(value):
        return (value.count("-") >= 3 and (alone or quoted)) or (alone and _hyphened_phrase(value))
    if assigned and not quoted and not alone and _SNAKE_NUMBER.fullmatch(value):
        return False
    letters_and_more = any(character.isalpha() for character in value)
    return letters_and_more or sum(character.isdigit() for character in value) >= 4


def _hyphened_phrase(value: str) -> bool:
    words = value.lower().split("-")
    return len(words) > 2 and not any(word in (_SAYING | _SAID) - _WORDS_OF_PHRASES for word in words)


def _made_up(value: str) -> bool:
    """Whether a few words in quotes are no sentence: one of them is as no word is."""
    words = value.split()
    said = any(word.lower() in _SAID or _NAMING.search(word) for word in words)
    odd = any(_LETTER.search(word) and (_DIGIT.search(word) or _SIGN.search(word)) for word in words)
    return len(words) <= 3 and not said and odd


def phrase(value: str, *, least: int) -> bool:
    """Whether it is a passphrase of plain words, as such are made: no word of it is one that sentences need."""
    words = value.split()
    return least <= len(words) <= 24 and all(
        word.isalnum() and word.lower() not in _SAID - _WORDS_OF_PHRASES and not _NAMING.fullmatch(word)
        for word in words
    )


def sentence(value: str) -> bool:
    """Whether several plain words behind "the password is" say something of it, in a language other than English."""
    words = value.lower().split()
    if any(word in _OF_SENTENCES for word in words):
        return True
    either = [word in _OF_SENTENCES_OR_ENGLISH for word in words]
    return sum(either) >= 2 or either[:1] == [True]


def field(value: str, *, listed: bool) -> bool:
    """Whether it is like the name of a field or a variable, as stands beside "password" in a list: ``first_name``.

    With a digit, as ``address_2``, it is one only where it is ``listed``: as the last argument of a call it is a value.
    """
    numbered = _DIGIT.search(value) is not None
    return not mixed(value) or (_FIELD.fullmatch(value) is not None and (listed or not numbered))


def token(value: str, *, quoted: bool) -> bool:
    """Whether it is a token, key or client secret: long, and random as no word is."""
    if len(value) < 8 or placeholder(value) or code(value) or any(character.isspace() for character in value):
        return False
    if _COUNTED.fullmatch(value) or _DATE.fullmatch(value) or _WORD_AND_NUMBER.fullmatch(value):
        return False
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if digits and letters:
        return not _TECHNICAL.fullmatch(value)
    if digits:
        return digits >= 16 and value.isalnum()
    changes = sum(one.islower() != two.islower() for one, two in pairwise(value))
    return value.isascii() and value.isalnum() and len(value) >= 16 and changes >= (4 if quoted else 6)
