"""What secrets are called: the names behind which a value may stand, in some thirty languages."""

import re
from typing import NamedTuple


class Name(NamedTuple):
    """``hint`` is its first literal part, lower case; ``whole`` matches from there. ``password``: of lenient values.

    ``word`` says that a plain word behind it and a verb may be the value: where the name means nothing else. ``verbs``
    matches an "is" of its language that is another word in another language, as Polish ``to`` and Finnish ``on`` are.
    """

    hint: str
    whole: re.Pattern[str]
    kind: str
    password: bool
    word: bool
    verbs: str


_WHERE = r"(?:[_-](?:base|prod(?:uction)?|dev|stag(?:e|ing)|test|live|main)(?![a-z]))?"
"""Which of several it is, behind the name: ``SECRET_KEY_BASE``, ``DB_PASSWORD_PROD``."""


def _name(hint: str, whole: str, kind: str, *, word: bool = False, verbs: str = "") -> Name:
    return Name(hint, re.compile(f"(?:{whole}){_WHERE}", re.IGNORECASE), kind, kind == "password", word, verbs)


def _passwords(*names: tuple[str, str], word: bool = False, verbs: str = "") -> tuple[Name, ...]:
    return tuple(_name(hint, whole, "password", word=word, verbs=verbs) for hint, whole in names)


NAMES = (
    *_passwords(
        ("pass", r"pass(?:w(?:ord(?:s|et)?|orts?|d|ört(?:er)?)|phrase|code|key)"
                 r"|(?<![A-Za-z])pass(?=[\"'\\\]]{0,3}[ \t]?[:=])"),
        word=True, verbs=r"(?:(?<=ord )|(?<=ordet ))er",  # Danish: behind German "Passwort" it is "he"
    ),
    *_passwords(
        ("kennwort", r"kennwort"), ("contrase", r"contrase(?:ñ|n|n\u0303|ny)a"),
        ("mot de passe", r"mot de passe"), ("wachtwoord", r"wachtwoord"),
        ("lösenord", r"lösenord(?:et)?"), ("pw", r"pwd|(?:(?<![A-Za-z])|(?<=bind)|(?<=root))pw(?![A-Za-z])"),
        ("wpa", r"(?<![a-z])wpa[23]?[ _-]?(?:key|psk|schlüssel)"), ("psk", r"(?<![a-z])psk(?![a-z])"),
        ("wlan", r"wlan[ _-]?(?:key|code|schlüssel)"), ("wifi", r"wifi[ _-]?(?:key|code)"),
        ("wi-fi", r"wi-fi[ _-]?(?:key|code)"), ("network", r"network[ _-]?(?:security[ _-]?)?key"),
        ("netzwerkschl", r"netzwerkschlüssel"), ("shared", r"(?<=pre-)shared[ _-]?key"),
        ("ssid", r"ssid\b[^\n.;]{1,60}?[ ,/](?:key|pass)(?![a-z])"), word=True,
    ),
    *_passwords(("senha", r"(?<![a-z])senha"), word=True, verbs="e"),
    *_passwords(
        ("adgangskode", r"adgangskoden?"), ("passord", r"passord(?:et)?(?![a-z])"), word=True, verbs="er",
    ),
    *_passwords(("lykilorð", r"lykilorð(?:ið)?"), verbs="er"),
    *_passwords(("palavra", r"palavra[- ]passe"), verbs="e"),
    *_passwords(("parola", r"(?<![a-z])parol[aă]"), verbs="este|e"),
    *_passwords(("salasana", r"salasana(?:ni)?"), ("parool", r"parool"), verbs="on"),
    *_passwords(("hasl", r"haslo"), ("hasło", r"hasło"), verbs="to(?: jest)?"),
    *_passwords(("heslo", r"heslo"), ("lozinka", r"lozinka"), ("geslo", r"(?<![a-z])geslo"), verbs="je"),
    *_passwords(
        ("motdepasse", r"motdepasse"), ("mdp", r"(?<![a-z])mdp(?![a-z])"), ("clave", r"(?<![a-z])clave"),
        ("jelsz", r"jelsz[oó](?:m)?"), ("slapta", r"slapta[zž]odis"),
        ("kata sandi", r"kata sandi"), ("kata laluan", r"kata laluan"), ("mật khẩu", r"mật khẩu"),
        ("mat khau", r"mat khau"), ("şifre", r"şifre(?:m|niz|si)?"), ("sifre", r"(?<![a-z])sifre(?:m|niz|si)?"),
        ("парол", r"парол(?:[ьяюеа]м?)?"), ("лозинк", r"лозинка"),
        ("κωδικ", r"κωδικ[οό]ς(?: πρόσβασης)?"), ("كلمة", r"كلمة (?:المرور|السر)"), ("סיסמ", r"ה?סיסמ[אה](?: שלי)?"),
        ("पासवर्ड", r"पासवर्ड"), ("รหัสผ่าน", r"รหัสผ่าน"),
    ),
    _name("secret", r"secret(?:[_ -]?(?:access[_ -]?)?(?:key|token))?", "secret"),
    _name("token", r"token(?:[_ -]?(?:value|secret))?", "token"),
    _name("api", r"(?<![a-z])api[_ -]?(?:key|secret)|(?<=[a-z])(?-i:Api)[_-]?(?:Key|Secret)", "api_key"),
    _name("auth", r"auth(?:entication|orization)?[_ -]?(?:key|code)", "api_key"),
    _name("access", r"access[_ -]?key(?:[_ -]?secret)?", "api_key"),
    _name("account", r"account[_ -]?key", "api_key"),
    _name("license", r"licen[sc]e[_ -]?key", "api_key"),
    _name("encryption", r"encryption[_ -]?key", "secret"),
    _name("signing", r"signing[_ -]?key", "secret"),
    _name("master", r"master[_ -]?key", "secret"),
    _name("private", r"private[_ -]?key", "secret"),
)  # fmt: skip
ASIAN = ("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "비번", "पासवर्ड")
