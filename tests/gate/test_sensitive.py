"""Secrets and personal data: what is found, what is not, and that a value goes as a whole.

Keys are made here of parts, so that no scanner of repositories takes this file for a leak.
"""

import base64
import random
import string
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
from tests.gate.build import sealed

from memsluice.envelope.seals import Sensitive
from memsluice.envelope.verdict import Decision
from memsluice.events.names import EventType
from memsluice.gate.checks.sensitive import check, found, named, redacted
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.sensitive.span import Span, joined

ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + "234567"
WORD = "hunter" + "22"
BEGIN, END = "-----BEGIN {} PRIVATE " + "KEY-----", "-----END {} PRIVATE " + "KEY-----"


def key(chars: int, alphabet: str = ALNUM, seed: int = 3) -> str:
    """Return letters that were drawn, a digit among them."""
    drawn = random.Random(seed)
    return "".join(drawn.choice(alphabet) for _ in range(chars - 1)) + "7"


CARD = " ".join(("4111", "1111", "1111", "1111"))
AMEX = "3782822" + "46310005"
IBAN = "DE89 3704 0044 " + "0532 0130 00"
PROVIDERS = {
    "aws_key": ["AKIA" + key(16, UPPER), "ASIA" + key(16, UPPER)],
    "github_token": ["ghp_" + key(36), "gho_" + key(36), "github_pat_" + key(22) + "_" + key(59)],
    "gitlab_token": ["glpat-" + key(20)],
    "slack_token": ["xoxb-" + key(12, "0123456789") + "-" + key(24), "xapp-1-" + key(30)],
    "stripe_key": ["sk_live_" + key(24), "rk_test_" + key(24), "whsec_" + key(32)],
    "google_key": ["AIza" + key(35), "GOCSPX-" + key(28)],
    "api_key": ["sk-" + key(48), "sk-proj-" + key(64), "sk-ant-api03-" + key(80), "SK" + key(32, HEX),
                "SG." + key(22) + "." + key(43)],
    "token": ["npm_" + key(36), "pypi-AgEIc" + key(60), "dckr_pat_" + key(27), "1234567890:AA" + key(33)],
    "jwt": ["eyJ" + key(30) + ".eyJ" + key(60) + "." + key(43)],
    "card": [CARD, CARD.replace(" ", ""), CARD.replace(" ", "-"), AMEX, "3782 822463 10005"],
    "iban": [IBAN, IBAN.replace(" ", ""), IBAN.replace(" ", "").lower(), "GB29NWBK6016" + "1331926819"],
    "ssn": ["078-05-" + "1121"],
}  # fmt: skip
TOLD = [
    ('{{"pin": "{}"}}', "4821"), ('{{"pin": {}, "floor": 3}}', "4821"), ('PIN="{}"', "4821"),
    ('{{"cvv": "{}"}}', "123"), ('{{"door_code": "{}"}}', "4821"), ("gate_code = '{}'", "4821"),
    ('{{\\"cvc\\": \\"{}\\"}}', "123"),
    ("Password for bo@x.com is {}", "Kessel77!"), ("login/password: bo / {}", "Gr33nTea!9"),
    ("login/pass: bo / {}", "Gr33nTea!9"), ("user / pass — bo / {}", "Gr33nTea!9"),
    ("Shop login, email + password: bo@x.com + {}", "Gr33nTea!9"),
    ("The master password, which nobody else knows, is {}.", "Kettle-Moon77"),
    ("SSN {}", "078.05.1121"), ("Card {}exp 09/28", "4539 1488 0343 6467"), ("card {}", "4539_1488_0343_6467"),
    ("IBAN {}", "DE 89 3704 0044 0532 0130 00"),
    ("https://b.example/f?X-Amz-Signature={}", key(64, HEX)),
    ("My password is: {}", WORD), ("my password is {}.", WORD), ("My password is: {}", "swordfish"),
    ("the passphrase is {}", "correct horse battery staple"), ("The passphrase is: {}.", "blue bird seven"),
    ("PIN {}", "1234"), ("my PIN is {}, please", "4821"), ("SSN {}", "078051121"),
    ("my social security number is {}", "078 05 1121"),
    ("Mein Passwort ist {}", WORD), ("Das Passwort für das WLAN lautet {}", "Hase99!"),
    ("mon mot de passe est {}", "soleil42"), ("mi contraseña es {}", "perro99"), ("a senha é {}", "gato2020"),
    ("het wachtwoord is {}", "fiets123"), ("мой пароль: {}", "кот2020"), ("我的密码是{}", "abc12345"),
    ("密码：{}", WORD), ("パスワードは {} です", WORD), ("the password for the wifi is {}", "Blue42Fish"),
    ("I changed my password to {}", "Blue42Fish"), ("password={}", WORD), ("DB_PASSWORD={}", "swordfish"),
    ("db_password: {}", "swordfish"), ("--password {}", WORD), ("run --token={} now", key(20)),
    ('{{"password": "{}", "user": "bob"}}', WORD), ('{{\\"password\\":\\"{}\\"}}', WORD),
    ("<password>{}</password>", WORD), ("api_key: {}", key(32)), ("client_secret='{}'", key(40)),
    ("aws_secret_access_key = {}", key(20) + "/" + key(19)), ("alice | password | {}", WORD),
    ("Server=x;User Id=sa;Password={};Encrypt=1", "ab%cd1"), ("postgres://app:{}@db:5432/x", "Pa/ss@w0rd"),
    ("git clone https://{}@github.com/acme/app.git", key(40)), ("https://{}:x-oauth-basic@github.com/a", key(40)),
    ("https://{}:@api.example.com/", key(32)), ("Authorization: SSWS {}", "00" + key(40)), ("header SSWS {}", key(40)),
    ('{{"auths": {{"reg": {{"auth": "{}"}}}}}}', "Ym9iOmh1bnRlcjJ4"),
    ("//registry.example/:_auth={}", "Ym9iOmh1bnRlcjJ4"),
    ("pip install git+https://{}@github.com/acme/app.git@main", key(40)),
    ("git+https://{}:x-oauth-basic@github.com/acme/app.git@v1", key(40)), ("https://{}@host?to=bob@x.example", key(40)),
    ("https://bob:{}@host/x", "x-oauth77Kessel"), ("AUTH={}", "Ym9iOmh1bnRlcjJ4"),
    ('{{\\"auth\\": \\"{}\\"}}', "Ym9iOmh1bnRlcjJ4"),
    ("https://bob:{}@host/x", WORD), ("Authorization: Bearer {}", key(40)), ("Authorization: Basic {}", key(24)),
    ("AccountKey={};x=1", key(86) + "=="), ("https://hooks.slack.com/services/{}", "T" + key(8) + "/B" + key(8) + "/"
     + key(24)), ("curl -u admin:{} https://x", WORD), ("**Password:** {}", WORD),
]  # fmt: skip
INNOCENT = [
    '{"pin": 13, "led": 4}', '{"phone_code": "385", "zip_code": "90210"}', '{"error_code": "4821", "exit_code": 127}',
    '{"cid": "1234"}', '{"country_code": "385"}', '{"status_code": 404}', '{"pinned": "2024"}',
    "550e8400-e29b-41d4-a716-446655440000", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "sha256:" + "ab12" * 16,
    "commit 3881d46 of main", "order 1234567890123456", "order number 4539578763621487", "+49 170 1234567",
    "(555) 123-4567", "555-123-4567", "ISBN 978-3-16-148410-0", "2024-01-15T10:00:00Z", "2019 2020 2021 2022",
    "token: short-lived", "a short-lived token is best", "case-sensitive password policy", "password: case-sensitive",
    "a well-kept secret", "secret: well-kept", "the password was changed yesterday", "password is required",
    "Password: required", "my password manager is 1Password", "password: ********", "api_key: <your-api-key>",
    "api_key=${API_KEY}", "token: YOUR_TOKEN_HERE", "token = get_token()", 'password=os.environ["PW"]',
    "password = os.getenv('PW')", "def login(user, password): pass", "password: str", "token: Optional[str] = None",
    "self.password = password", "user.password = form.password", "if password == '':", "const t = await getToken();",
    "password_hash = bcrypt(password)", "the password field is 12 characters", "password must have 8-12 characters",
    "The password is SHA-256 hashed", "token: ERC-20", "the secret is in the sauce", "secret: 3 cups of sugar",
    "tokenizer: gpt2-medium-2019", "max_tokens: 4096", "next_page_token: abc123def456", "compass: north",
    "pin 4 of the connector", "shipping 1234", "https://example.com:8080/a@b", "https://user@example.com/",
    "https://marketing-team-berlin@example.com/", "ssh://deploy-bot-production@build.example.com/repo",
    "https://medium.example.com/@a1b2c3d4e5f6a7b8c9d0/post", 'auth: "required"', "auth=YmVhcmVy",
    "auth=dXNlcjpwYXNzd29yZA==", "auth: bm90ZTogY2FsbCB0aGVt", "ftp://marketingberlin2@example.com/",
    "https://d111111abcdef8ghij.cloudfront.example:443?email=bob@x.example", "ssh://productiondeploy01@build.example/repo",
    "message://%3CABCD1234EFGH5678IJKL90@mail.example.com%3E", "SSWS documentation-of-the-team-site",
    "the social is 212 55 1234 is the room number",
    "https://0123456789abcdef0123456789abcdef@o4504.ingest.sentry.io/42",
    "postgres://user:password@localhost/db", "https://${USER}:${PASS}@host", "The access key: Alt+F4",
    "private key: keep it safe", "primary key: id", "password: $PASSWORD", "token=token", "Visa ending in 1111",
    "The password is stored in the vault.", "the passphrase is stored in the password manager", "api key: see the wiki",
    "The token was revoked on 2024-05-01", "access token: 3600 seconds", "IMEI 356938035643809", "room 12-34-56",
    "Das Passwort wurde gestern geändert", "le mot de passe est obligatoire", "пароль был изменён вчера",
    "密码是必填的", "パスワードは必要です", "password: Must contain a digit", "password is 8-character",
    "sk-learn-pipeline-with-many-steps-2", "task-1234567890-abcdefghijkl", "DE12 is my flat", "000-12-3456",
    "4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "tracking 1Z999AA10123456784", "secretary: Ms. Miller2",
]  # fmt: skip


@pytest.mark.parametrize("kind", PROVIDERS)
def test_what_shows_by_its_own_form_is_found_whole(kind: str) -> None:
    """A key, card or account number in the middle of a sentence is one finding, of its kind and of just its extent."""
    for value in PROVIDERS[kind]:
        text = f"Note this: {value} is for the office."
        assert found(text) == (Span(kind, 11, 11 + len(value)),), value
        assert redacted(text, found(text)) == f"Note this: [redacted: {kind}] is for the office."


@pytest.mark.parametrize(("sentence", "value"), TOLD)
def test_what_is_told_by_name_is_found_and_what_stands_around_it_stays(sentence: str, value: str) -> None:
    """Of an assignment, a flag, an address or a sentence only the value goes; quotes, commas and brackets stay."""
    text = sentence.format(value)
    spans = found(text)
    assert [text[span.start : span.end] for span in spans] == [value]
    assert redacted(text, spans) == sentence.format(f"[redacted: {spans[0].kind}]")


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    """Identifiers, hashes, numbers, placeholders, code and talk about passwords are no secrets."""
    assert found(text) == ()


PUBLIC_KEYS = {"ssh-ed25519": 51, "ssh-rsa": 372, "ecdsa-sha2-nistp256": 104}


@pytest.mark.parametrize(
    ("key", "content", "value"),
    [
        ("gmail_password", "Xk29!fff", "Xk29!fff"), ("accounts/db/password", "Xk29!fff", "Xk29!fff"),
        ("openai_api_key", "9f8e7d6c5b4a39281706f5e4d3c2b1a0", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
        ("door code", "4821#", "4821"), ("user.prefs.pin", "4821", "4821"), ("ssn", "078051121", "078051121"),
    ],
)  # fmt: skip
def test_a_key_says_what_its_content_is(key: str, content: str, value: str) -> None:
    """A bare value under a key that names it is a secret as much as both in one sentence; places are the content's."""
    (one,) = named(content, key)
    assert content[one.start : one.end].rstrip("#") == value


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("password", "stored in Bitwarden"), ("password policy", "Twelve characters at least"), ("max_tokens", "4096"),
        ("secret santa", "Friday at six"), ("zip code", "90210"), ("error code", "E4: press reset"), ("code", "3.12"),
        ("wifi password", "on the fridge"), ("pref:1", "Likes tea"), (f"card {CARD}", "ends in May"),
    ],
)  # fmt: skip
def test_a_key_makes_no_secret_of_what_is_none(key: str, content: str) -> None:
    """What a key says, and a value in the key itself, are no finding in the content."""
    assert not named(content, key)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Ana | PIN | 4821", "4821"), ("Bob | wifi password is | hunter2X9", "hunter2X9"),
        ("Bob | SSN | 078051121", "078051121"), ("| gate code | 4821 |", "4821"),
        ('{"name": "DB_PASSWORD", "value": "hunter2X9"}', "hunter2X9"),
        ('<input type="password" name="pw" value="hunter2X9">', "hunter2X9"),
        ("<property name='password' value='hunter2X9'/>", "hunter2X9"),
        ('{"name": "max_tokens", "value": "4096"}', ""), ('{"key": "password", "value": "see the vault"}', ""),
        ('{"name": "colour", "value": "hunter2X9"}', ""),
        ("Bob | area code | 030", ""), ("| order | 4821 |", ""), ("| password | see the vault |", ""),
    ],
)  # fmt: skip
def test_a_row_or_a_record_says_in_one_part_what_the_next_is(text: str, value: str) -> None:
    """A fact, subject | relation | object, a table's row, and a name beside its value tell as much as a sentence."""
    assert "".join(text[one.start : one.end] for one in found(text)) == value


@pytest.mark.parametrize("algorithm", PUBLIC_KEYS)
def test_a_public_key_is_no_secret(algorithm: str) -> None:
    """Whatever bytes it has: what is there to be given to everybody stays in memory."""
    for seed in range(200):
        head = len(algorithm).to_bytes(4) + algorithm.encode()
        blob = head + random.Random(seed).randbytes(PUBLIC_KEYS[algorithm] - len(head))
        text = f"Bo's public key: {algorithm} {base64.b64encode(blob).decode()} bo@laptop"
        assert found(text) == (), text


@pytest.mark.parametrize("chars", [201, 257, 300, 5_000])
def test_a_long_value_goes_to_its_last_character(chars: int) -> None:
    """No tail of a value is left, however long it is and however it is told."""
    value = key(chars)
    for text in (f"password: {value}", f"token={value}", f"ghp_{value}", f'"secret": "{value}"', f"x://a:{value}@h"):
        assert key(40) not in redacted(text, found(text))
        assert value[-20:] not in redacted(text, found(text))


@pytest.mark.parametrize("armour", ["RSA", "OPENSSH", "EC"])
def test_a_private_key_goes_with_its_edges_also_where_it_is_cut_off(armour: str) -> None:
    """The block goes as one, in a JSON string with written line breaks, and without its last line, too."""
    body = [key(64, ALNUM + "+/", seed) for seed in range(4)]
    whole = "\n".join((BEGIN.format(armour), *body, END.format(armour)))
    assert redacted(f"a {whole} b", found(f"a {whole} b")) == "a [redacted: private_key] b"
    quoted = '{"private_key": "' + whole.replace("\n", "\\n") + '\\n", "a": 1}'
    assert redacted(quoted, found(quoted)) == '{"private_key": "[redacted: private_key]\\n", "a": 1}'
    cut = "\n".join((BEGIN.format(armour), *body[:3], body[3][:20]))
    assert redacted(f"{cut} and more words", found(f"{cut} and more words")) == "[redacted: private_key] and more words"


def test_every_card_of_a_table_is_found_and_none_in_a_longer_number() -> None:
    """Twenty cards in a row, divided like their own groups, are twenty findings; a run of digits is no card."""
    row = " ".join([CARD] * 20)
    assert [row[span.start : span.end] for span in found(row)] == [CARD] * 20
    for text in ("4" + CARD.replace(" ", "") + "00000", "0.4111111111111111", "9-4111-1111-1111-1111-2", "4111" * 20):
        assert found(text) == ()


def test_what_is_not_seen_hides_nothing() -> None:
    """Zero-width characters inside a key and full-width digits are read through; the span has the text's own places."""
    name = "AKIA" + key(16, UPPER)
    hidden = name[:2] + "\u200b" + name[2:9] + "\u2060" + name[9:]
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in CARD)
    for value in (hidden, wide, name[:5] + "\x01" + name[5:]):
        text = f"é {value} é"
        assert [text[span.start : span.end] for span in found(text)] == [value]


def test_findings_that_overlap_or_touch_are_one() -> None:
    """Nothing of a value is left between two findings, and no marker is cut in two."""
    assert joined([Span("b", 4, 9), Span("a", 0, 5), Span("c", 9, 11), Span("d", 12, 13)]) == (
        Span("a", 0, 11),
        Span("d", 12, 13),
    )
    text = "token: ghp_" + key(36)
    assert redacted(text, found(text)) == "token: [redacted: github_token]"


def test_what_was_taken_out_is_not_found_again() -> None:
    """An agent that repeats a redacted entry writes nothing that is sensitive."""
    for sentence, value in TOLD:
        text = sentence.format(value)
        assert found(redacted(text, found(text))) == ()


def test_a_text_full_of_short_values_stays_within_its_limit() -> None:
    """Markers longer than what they stand for never make a content too large for its record: stars stand there then."""
    text = "PIN 1234 " * 900
    spans = found(text)
    assert len(spans) == 900
    assert redacted(text, spans, len(text)) == "PIN **** " * 900


ADVERSARIAL = ["a", "-", "1", "1 ", "4111 ", "eyJ", "eyJa.", "token:", 'token="', "password is ", "://a:", "AKIA",
               "-----BEGIN PRIVATE " + "KEY-----", 'password:\\"', "DE89 ", "\u200b",
               "password for ", "sk-", 'name="a" value="', "name: 'pin' value: ",
               "a,password\n", "user,password\nbob,Tulip77\n", "password|\n|---|\n", "|---\npassword|", '"pw,', "pw\n",
               "password,a;b\tc|\n", "pw,pw,pw,pw\n", "changed the password for a to ",
               "changed the password of a b c d e ",
               "hasło to ", ":5432:a:b:", "4111/", "4111 · ", "पासवर्ड a", "pin 4711 of the a a ", "DE 89 37 ", "DE.89.",
               "part no. 536-22-1234 ", "seed words for ", "password for Bob's "]  # fmt: skip


@pytest.mark.parametrize("part", ADVERSARIAL)
def test_the_time_is_linear(part: str) -> None:
    """64 KiB of what patterns begin with takes some four times as long as a quarter of it, and not sixteen times."""

    def taken(chars: int) -> Iterator[float]:
        text = (part * chars)[:chars]
        for _ in range(6):
            began = time.process_time()
            found(text)
            yield time.process_time() - began

    most = 10 * min(taken(16_384)) + 0.05
    assert any(one < most for one in taken(65_536))  # the first that is quick enough is the last


@pytest.mark.parametrize(
    ("action", "taken", "code", "decision"),
    [
        ("redact", True, "sensitive.redacted", Decision.ACCEPT),
        ("hold", True, "sensitive.redacted", Decision.ACCEPT),
        ("hold", False, "sensitive.held", Decision.QUARANTINE),
        ("redact", False, "sensitive.held", Decision.QUARANTINE),
        ("report", False, "sensitive.reported", Decision.ACCEPT),
    ],
)
def test_what_seal_left_whole_is_held_unless_the_policy_in_force_reports_it(action, taken, code, decision) -> None:
    """A policy that asks for redaction and comes too late for it lets no value land: fail closed."""
    span = Sensitive("content", "password", 3, 9)
    event = replace(sealed("user", EventType.WRITE, 1, content="whatever it says"), sensitive=(span,), redacted=taken)
    finding = check(event, laid_over(default().default, {"sensitive": {"action": action}}))
    assert finding is not None
    assert (finding.code, finding.decision, finding.detail) == (code, decision, {"spans": [asdict(span)]})
    assert check(replace(event, sensitive=()), default().default) is None
