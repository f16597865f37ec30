"""Secrets as people and programs write them, and honest texts that speak of such: what is found, and what is not.

Values are made here of parts, so that no scanner of repositories takes this file for a leak.
"""

import base64
import random
import string
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from memsluice.events import blobs
from memsluice.gate.checks.sensitive import found, redacted
from memsluice.gate.sensitive.hints import Search, Searches
from memsluice.gate.sensitive.span import Span

ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + "234567"
WORD = "hunter" + "22"
SEED = "abandon ability able about above absent absorb abstract absurd abuse access accident"


def key(chars: int, alphabet: str = ALNUM, seed: int = 5) -> str:
    """Return letters that were drawn, a digit among them in each sixteen."""
    drawn = random.Random(seed)
    letters = [drawn.choice(alphabet) for _ in range(chars)]
    letters[min(8, chars - 1) :: 12] = "7" * len(letters[min(8, chars - 1) :: 12])
    return "".join(letters)


PROSE = [
    ("My password is {}", "sunflower"), ("the wifi password is {}", "correct horse battery"), ("pw: {}", "sunflower"),
    ("The password for the router is {}.", "dragonfly"), ("my password is {}, please remember it", "swordfish"),
    ("Remember that my Netflix password is {} and my plan is family", "pineapple"), ("passphrase: {}", "blue river"),
    ("his passcode is {}", "zebrafish"), ("Mein Passwort ist {}.", "Sonnenblume"),
    ("mon mot de passe est {}", "tournesol"),
    ("mi contraseña es {}", "girasol"), ("a minha senha é {}", "girassol"), ("mijn wachtwoord is {}", "zonnebloem"),
    ("mitt lösenord är {}", "solros"), ("moje heslo je {}", "kocka123"), ("moje hasło to {}", "kotek2020"),
    ("la mia password è {}", "girasole"), ("la parola chiave: x, la parola d'accesso, parola: {}", "pisica77"),
    ("şifrem: {}", "kedi2021"), ("Mật khẩu: {}", "meocon99"), ("비밀번호는 {} 입니다", "dkssud12"),
    ("密码: {}", "woaini520"),
    ("рабочий пароль это {}", "кошка2020"), ("ο κωδικός είναι {}", "gata2020"), ("כי הסיסמה היא {}", "hatul123"),
    ("Use password {} to get in", WORD), ("the password {} works", "Blue42Fish"), ("login admin / {}", "Sommer2024!"),
    ("login: admin/{}", "Sommer2024!"), ("credentials: bob:{}", "S3cret!x"), ("Zugangsdaten: admin / {}", "Winter#23"),
    ("username bob password {}", "Hase99!"), ("user: alice, pass: {}", "Hase99!"),
    ("log in with admin and {}", "P4ssw0rt!"),
    ("machine x.org login bob password {}", "n3trcpw"), ("PIN {}", "4821"), ("the PIN of my card is {}", "4821"),
    ("door code {}", "4711"), ("The gate code is {}", "2580#"), ("alarm code: {}", "9041"),
    ("the safe combination is {}", "12-34-56"), ("your verification code is {}", "482913"), ("PUK: {}", "12345678"),
    ("Der Türcode lautet {}", "4711"), ("CVV: {}", "123"),
    ("my seed phrase is {}", SEED), ("Recovery phrase: {}", SEED), ("mnemonic: {} keep it", SEED + " " + SEED),
    ("{} is my SSN", "078051121"),
    ("My Netflix password is {}", "Tulip!2019"), ("the router's admin password: {}", "correct-horse-battery"),
    ("2FA backup codes: {}", "8f3k-29dk, 9s8d-2k3f"), ("recovery codes are {}.", "83920174 10293847"),
    ("Your verification code is {}", "884 112"), ("contraseña del router: {}", "Luna_4488"),
    ("La password di Anna è: {}", "Luna_4488"), ("Das Passwort fürs WLAN ist {}", "Luna_4488"),
    ("Пароль от почты: {}", "Zima2023"), ("My password's {}", "Tulip77"), ('password: "{}"', "p@ss w0rd9"),
    ("my password is {}", "Ab&cd=1Zz"), ("Backup code {} works when Anna takes milk", "7f3k2"),
    ("otp secret {}", key(16, UPPER)), ("wallet, private key {}", "0x" + key(64, HEX)),
    ("my api key {} is new", key(32, HEX)), ("my driver's license is {}", "D1234567"),
    ("{} is my password.", "Tulip!2019"), ("Use '{}' as the password for the zip", "Tulip!2019"),
    ("{} ist mein WLAN-Passwort", "Tulip!2019"), ("{} est le mot de passe du NAS", "Tulip!2019"),
    ("The root password was set as \"{}\"", "Tulip77"), ("The password has been changed to {}.", "Tulip77"),
    ("the password was reset to {}", "Tulip77"), ("My login is bob@x.org and the pass is {}", "Tulip77"),
    ("Passwords:\n- shop: {}\n- bank: none", "Tulip#2020"), ("Wi-Fi: SSID 'Casa', key {}", "w1nterrose"),
    ("The WLAN key is {}", "w1nterrose"), ("wpa2 key: {}", "w1nterrose"), ("Netzwerkschlüssel: {}", "w1nterrose"),
    ("Your OTP is {}", "482913"), ("OTP code {}", "482913"), ("OTP: {}", "4829"),
    ("the OTP for my bank is {}", "48291"),
    ("otp={}", "482913"), ("OTP {} is your code", "482913"), ("the password is {}", "purple cat eats nine clouds"),
    ("the password is {}", "purple van eats nine clouds"), ("the password is {}", "seven horses met under willow"),
    ("the password is {}", "brave dogs do paint walls"), ("the password is {}", "old pirates con rich sailors"),
    ("la contraseña es: {}", "el perro come pan"),
]  # fmt: skip
ASSIGNED = [
    ("DB_PASSWORD={}", WORD), ("export PGPASSWORD='{}'", "swordfish"), ('"api_key": "{}"', key(24)),
    ("api-key: {}", key(32)),
    ("x-api-key: {}", key(32)), ("SECRET_KEY = '{}'", key(50)), ("client_secret: {}", key(40)),
    ("  password: {}\n", WORD),
    ("password: '{}'", "swordfish"), ("spring.datasource.password={}", WORD),
    ("postgres://app:{}@db.local:5432/x", WORD),
    ("mongodb+srv://u:{}@c.mongodb.net/x", "aB3cD4"), ("redis://:{}@cache:6379", WORD), ("amqp://a:{}@mq/%2f", "g7Hj"),
    ("jdbc:mysql://h/db?user=a&password={}&ssl=1", WORD), ("Server=a;Uid=b;Pwd={};", "aB3%cD"),
    ("curl -u bob:{} https://x.y", WORD),
    ("Authorization: Bearer {}", key(40)), ("Authorization: Basic {}",
    base64.b64encode(b"bob:" + WORD.encode()).decode()),
    ("Authorization: Token {}", key(40)), ("Authorization: {}", key(40)), ("Cookie: session={}; theme=dark", key(32)),
    ("Set-Cookie: sid={}; HttpOnly", key(40)), ("JSESSIONID={}", key(32, HEX.upper())),
    ("sshpass -p {} ssh bob@host", WORD),
    ("mysql -u root -p{} shop", WORD), ("docker login -u bob -p {} reg.io", WORD), ("redis-cli -h x -a {}", WORD),
    ("aws_secret_access_key = {}", key(40)), ("AWS secret key: {}", key(40)), ("TWILIO_AUTH_TOKEN={}", key(32, HEX)),
    ("https://x.y/?access_token={}&a=1", key(40)), ("PrivateKey = {}", key(43) + "="), ("_authToken={}", key(36)),
    ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};", key(86) + "=="),
    ("https://a.blob.core.windows.net/c?sv=2022&sig={}", key(43) + "%3D"),
    ("<add key=\"Password\" value=\"x\"/> password=\"{}\"", WORD),
    ("define('DB_PASSWORD', '{}');", "Tulip!77"), ("h.set('X-Api-Key', '{}')", key(32)),
    ("requests.get(u, auth=('bob', '{}'))", "Tulip-7-Rose"), ("smtp.login(\"bob@x.org\", \"{}\")", "Tulip-7-Rose"),
    ("cfg.set('password', '{}')", "Sunflower1"), ("('password', '{}')", "sunflower_7"),
    ("rows[0].set('password', '{}', true)", "Sunflower1"), ('m = {{"password", "{}"}}', "sunflower_7"),
    ("secret_key_base: {}", key(64, HEX)), ("DB_PASSWORD_PROD={}", WORD), ("bindpw {}", "Und3rTow"),
    ("jdbc:oracle:thin:hr/{}@//ora:1521/X", "tig3rLily"), ("sqlplus hr/{}@orcl", "tig3rLily"),
    ("WIFI:T:WPA;S:Home;P:{};;", "blue-berry-pie"), ("psk=\"{}\"", "w1nterrose"),
    ("the license key is {}", "-".join((key(5, UPPER), key(5, UPPER), key(5, UPPER)))), ("JWT_SECRET={}", key(32)),
]  # fmt: skip
FORMS = [
    *("AKIA" + key(16, UPPER), "ghp_" + key(36), "github_pat_" + key(22) + "_" + key(59), "glpat-" + key(20)),
    *("xoxb-" + key(12, "0123456789") + "-" + key(24), "xoxe.xoxp-1-" + key(60), "sk_live_" + key(24),
    "rk_live_" + key(24)),
    *("SK" + key(32, HEX), "SG." + key(22) + "." + key(43), "npm_" + key(36), "pypi-AgEIc" + key(70)),
    *("sk-" + key(48), "sk-proj-" + key(80), "sk-ant-api03-" + key(93) + "AA", "hf_" + key(34)),
    *("123456789:AA" + key(33), "M" + key(23) + "." + key(6) + "." + key(27), key(32, HEX) + "-us12"),
    *("AIza" + key(35), "ya29." + key(60), "1//0" + key(60), "dp.pt." + key(43), "lin_api_" + key(40)),
    *("figd_" + key(40), "glsa_" + key(32) + "_" + key(8, HEX), "hvs." + key(90), "tskey-auth-" + key(30),
    "nvapi-" + key(64)),
    *("pscale_tkn_" + key(43), "rubygems_" + key(48, HEX), "sntrys_" + key(60), "squ_" + key(40, HEX),
    "ATATT3" + key(180)),
    *("EAA" + key(120), "sl." + key(130), "pat" + key(14) + "." + key(64, HEX), "secret_" + key(43),
    "shpat_" + key(32, HEX)),
    *("dapi" + key(32, HEX), "PMAK-" + key(24, HEX) + "-" + key(34, HEX), "LTAI" + key(20),
    "AGE-SECRET-KEY-1" + key(58, UPPER)),
    *("abc7Q~" + key(34), key(44) + "AzFu" + key(8) + "==", "eyJ" + key(30) + ".eyJ" + key(60) + "." + key(43)),
    "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLv" + "yTJ",
]  # fmt: skip
NUMBERS = [
    ("card {}", "4111 1111 " + "1111 1111"), ("card {}", "4111.1111." + "1111.1111"),
    ("Visa {}", "4 1 1 1 1 1 1 1 " + "1 1 1 1 1 1 1 1"),
    ("{}", "5555-5555-" + "5555-4444"), ("{}", "3782 822463 " + "10005"), ("card {}", "4111–1111–" + "1111–1111"),
    ("Konto {}", "DE89 3704 0044 " + "0532 0130 00"), ("{}", "GB82WEST1234" + "5698765432"),
    ("SSN: {}", "078-05-" + "1121"),
    ("social security number {}", "078 05 1121"),
    ("CPF {}", "529.982." + "247-25"),
    ("DNI {}", "12345678" + "Z"), ("BSN: {}", "1112" + "22333"), ("{}", "RSSMRA85T10" + "A562S"),
    ("{}", "131052-" + "308T"),
    ("PESEL {}", "4405140" + "1359"), ("{}", "756.9217." + "0769.85"), ("NHS number {}", "943 476 " + "5919"),
    ("Steuer-ID: {}", "86 095 742 " + "719"), ("SIN {}", "046 454 " + "286"), ("Aadhaar {}", "2341 2341 " + "2346"),
    ("{}", "11010519491231" + "002X"), ("NI number {}", "AB1234" + "56C"),
    ("NIR {}", "2 55 08 14 168 " + "025 38"), ("ITIN {}", "912-70-" + "1234"),
]  # fmt: skip
HONEST = [
    "Reset your password at https://example.com/reset", "the building code is 2021 edition",
    "The access code of conduct is from 2019", "The door code of practice 2015",
    "the password of the meeting: see the invite", "password for guests: ask Anna", 'password: "at least 8 characters"',
    "password: case-sensitive-only", "The backup codes are in the blue folder.", "My driver's license expires in 2031.",
    "The recovery code expires 2027-01-01.", "the secret ingredient-of-grandmother", "an access key per developer",
    "I forgot my password", "Passwords are kept in the vault.", "The password policy demands 12 characters.",
    "Reset your PIN.",
    "password: required", "password: <password>", "password=${DB_PASSWORD}", "password: xxxx", "password: changeme",
    "pw = getpass.getpass('Password: ')", "token = os.environ['API_TOKEN']", "apiKey: process.env.API_KEY,",
    "secret := vault.Read(path)", "The password is wrong.", "My password is expired.", "The password is too short",
    "the password is the same as before", "My password is not working", "the password is case sensitive",
    "password is fine",
    "The password is stored securely.", "The wifi password is on the fridge.",
    "the password is written on the whiteboard",
    "My password is really long and complicated.", "The password was rotated in March.", "the passcode is broken",
    "His password is a mess", "Her password is Tom's birthday", "The password is plain text",
    "the password is bcrypt hashed",
    "Das Passwort ist falsch.", "Mein Passwort ist abgelaufen", "Das Passwort ist zu kurz", "Das Passwort ist sicher",
    "le mot de passe est incorrect", "mon mot de passe est oublié", "la contraseña es incorrecta",
    "la contraseña es muy larga",
    "la clave es paciencia", "a senha é obrigatória", "het wachtwoord is verlopen", "la parola è libertà",
    "La password è scaduta",
    "lösenordet är fel", "пароль неверный", "密码错误，请重试", "パスワードを忘れました", "비밀번호를 잊어버렸어요",
    "The login page is at /login/v2", "login admin panel is slow", "log in with Google and Facebook",
    "Log in with SSO and MFA.",
    "username and password fields are required", "User bob password reset requested",
    "Please log in and approve ticket OPS-4411",
    "account 12345 / invoice 2024-118", "The account is in EUR / USD", "user: alice, role: admin",
    "email alice@example.org, password unchanged",
    "exit code 1234", "zip code 10115", "error code 50012", "status code: 404", "area code 212", "country code 49",
    "PIN the message at the top", "pin 13 of the Arduino", "pinned version 4.2.1", "The PIN has 4 digits.",
    "PIN entry failed 3 times",
    "The access code expires in 10 minutes", "building 4711 is closed", "gate 42 at 10:15",
    "security review on 2024-05-12",
    "git commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "digest sha256:" + "0f1e" * 16,
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "id 123e4567-e89b-12d3-a456-426614174000", "order 4012-8888-1234", "order number 1002003004005",
    "call +1 (212) 555-0142",
    "Tel. 030 1234 5678", "ISBN 978-0-306-40615-7", "tracking 00340434161094042557", "tracking 1Z12345E0205271688",
    "IP 192.168.178.201, port 8080", "2024-01-15T10:00:00.000Z", "lat 52.520008, lon 13.404954", "IMEI 490154203237518",
    "VIN 1HGCM82633A004352", "https://example.org/a/b/c-d-e-f-2024-05-12-quarterly-report", "https://user@host.example/path",
    "postgres://localhost:5432/app", "git@github.com:acme/shop.git", "see docs/password-reset.md", "s3://bucket/key/2024/report.csv",
    "The token bucket has 100 tokens", "tokens: 4096", "A token costs 3 cents", "the token expires after 15 minutes",
    "token limit is 8192",
    "secret santa is on 12 December", "The secret ingredient is cinnamon.", "key: value", "the key is under the mat",
    "Key results: revenue up 12%", "the api key is in the vault", "API key rotation happens quarterly",
    "Authorization: required",
    "Cookie: disabled", "He likes cookies: chocolate, oat", "session=open", "session 12 of 14",
    "the session id is logged",
    "The wallet has a backup phrase of 12 words", "Seed the database: run make seed first", "the seed is 42",
    "seed round: 4 million",
    "recovery phrase is stored in the bank's safe and nobody has ever read it aloud to anyone before",
    "card ending in 4242",
    "The card has a limit of 5000", "gift card 50 EUR", "Konto DE12 3456", "SSN is required on the form",
    "the social team has 12 people",
    "DNI is Spanish for identity card", "sin 30 degrees is 0.5", "NHS waiting list has 7500000 people",
    "room 078-05-11",
    "aGVsbG8gd29ybGQgdGhpcyBpcyBwbGFpbg==", "q=password%20reset%20help", "100% sure; 50%20off", "curl -u $USER:$PASS https://x",
    "curl https://example.org/api", "docker login -u bob --password-stdin", "mysql -u root -p shop",
    "passport number is required",
    "basic auth is off", "Bearer tokens are used", "The bearer of news", "compass heading 1234567", "bypass: enabled",
    "passage 12",
    "user=alice&lang=en", "credentials are rotated every 90 days", "creds: see 1Password",
    "the credentials for bob were sent",
    "Sign in with bob@example.org and approve", "Password1 is a bad password choice", "the password length is 16",
    "password reset link2",
    "const password = req.body.password;", "password: z.string().min(8)", "if (!password || password.length < 8) {",
    "self.token = token", "token: str = Field(...)", "API_KEY=your_api_key_here", "SECRET=<secret>",
    "PASSWORD=********",
    "os.getenv('SECRET_KEY')", "password = None", "pwd", "run pwd and ls", "cd $(pwd)/src",
    "The pass is closed in winter",
    "Passkeys are better than passwords", "two-factor code via SMS", "verification code was not sent",
    "Visa application 2024-12345",
    "task-2024-11-05-migrate-users-to-v2", "arn:aws:iam::123456789012:role/deploy",
    "registry.example.com/app@sha256:" + "ab12" * 16,
    "La contraseña es la misma de siempre.", "Das Passwort ist immer noch das gleiche.",
    "Le mot de passe est le nom de son chat", "La password è sempre la stessa di prima",
    "Het wachtwoord is nog steeds hetzelfde als eerst", "La senha é formada por letras e números",
    "Postal PIN code: 560001", "1Password is my password manager.", "KeePass2 is the password store here",
    "OPS-4411 is the password ticket", "bob7@example.org is the password contact.",
    'columns = ["username", "password", "first_name", "address2"]', 'os.getenv("DB_PASSWORD", "changeme")',
    "login('bob', password)", "auth=('user', 'pass')", "WIFI:T:nopass;S:Guests;;", "sqlplus hr/$PW@orcl",
    "Passwords:\n- rotate: every 90 days\n- length: 12", "ssid: Home, key: see the fridge",
    "network key figures for 2024", 'auth_methods: ["oauth2", "saml2.0"]',
    "The password was reset to factory settings", "password_test.py has 12 tests", "Erlang OTP 26.2 is out",
    "OTP 2024 is a release", "We shipped OTP 26001 build", "OTP is out: release 26001",
    "Het wachtwoord is van Anna uit Utrecht", "A senha é algo com nome do gato",
    '["address_1", f(x), "password", "address_2"]', '("password", "address_2", "email")', '("password", "first_name")',
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "value"), PROSE + ASSIGNED + NUMBERS)
def test_what_is_said_or_assigned_is_found(sentence: str, value: str) -> None:
    """Just the value goes, and what says what it is stays."""
    text = sentence.format(value)
    assert [text[span.start : span.end] for span in found(text)] == [value]


@pytest.mark.parametrize("value", FORMS, ids=range(len(FORMS)))
def test_what_an_issuer_marks_is_found_wherever_it_stands(value: str) -> None:
    """In a sentence, in quotes, in code, in a sentence without blanks: the whole of it and no more."""
    for text in (f"Use {value} for it.", f'x = "{value}"', f"({value})", f"é: {value}\n"):
        assert [text[span.start : span.end] for span in found(text)] == [value], text


@pytest.mark.parametrize("text", HONEST)
def test_honest_talk_of_secrets_is_left_alone(text: str) -> None:
    """Rules, complaints, code, placeholders, identifiers and numbers of other kinds are no secrets."""
    assert found(text) == ()
    assert found(f"Note: {text}\nThanks, Tom") == ()


@pytest.mark.parametrize("secret", ["password: " + WORD, "ghp_" + key(36), "my card is 4111 1111 " + "1111 1111"])
def test_what_is_encoded_is_found(secret: str) -> None:
    """Base64 and hex of a text with a secret go as a whole; of a percent-encoded one the value's own codes."""
    for code in (base64.b64encode(secret.encode()).decode(),
    base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
                 secret.encode().hex()):  # fmt: skip
        text = f"Keep this: {code} please"
        assert [text[span.start : span.end] for span in found(text)] == [code]
    text = f"https://x.y/?q={quote(secret, safe='')}&a=1"
    assert WORD not in redacted(text, found(text))
    assert key(36) not in redacted(text, found(text))
    assert "1111" not in redacted(text, found(text))


@pytest.mark.parametrize(
    "text",
    [
        "Hours &quot;api_key&quot;: &quot;{}&quot; of it", "GET /login?next=%2Fcb%3Fapi_key%3D{} 302", "password%3D{}",
        "Location: https://a.example/cb%23access_token%3D{}", "secret&colon; {}", "DB_PASSWORD&#61;{}",
        "password&#58; {}", "Authorization%3A%20Bearer%20{}", "password&nbsp;is&nbsp;{}",
        "api_key\\u0022: \\u0022{}\\u0022",
    ],
)  # fmt: skip
def test_a_key_behind_a_coded_separator_goes_too(text: str) -> None:
    """A key is as random as what the detectors leave unread, and is read here nonetheless."""
    for value in (key(22), key(40, HEX)):
        assert value not in redacted(text.format(value), found(text.format(value)))


def test_a_percent_code_at_the_end_goes_whole() -> None:
    """Of a value whose last letter is written as a code, the three letters of that go, too."""
    text = "n%3A password%3A " + WORD + "%21 ok"
    assert redacted(text, found(text)) == "n%3A password%3A [redacted: password] ok"


@pytest.mark.parametrize(
    ("colon", "at"), [("&#58;", "&#64;"), ("&colon;", "&commat;"), ("&#x3a;", "&#X40;"), ("\\u003a", "\\u0040")]
)
def test_codes_of_pages_and_records_are_read(colon: str, at: str) -> None:
    """A password goes where its address is written with a page's entities or a record's escapes, and no more of it."""
    text = f"R&D; fish &amp; chips: mysql{colon}//root{colon}{WORD}{at}db.example"
    assert redacted(text, found(text)) == text.replace(WORD, "[redacted: password]")


def test_what_is_split_or_dressed_is_found_in_its_own_place() -> None:
    """Zero-width characters in a word of a name or a value and digits of other scripts: places are the text's own."""
    text = "my pass\u200bword is hun\u200bter22 ok"
    assert [text[span.start : span.end] for span in found(text)] == ["hun\u200bter22"]
    digits = "".join(chr(0x660 + int(one)) if one.isdigit() else one for one in "4111 1111 " + "1111 1111")
    assert [span.kind for span in found(f"card {digits}")] == ["card"]


def test_a_search_runs_where_its_hint_or_its_need_is_there() -> None:
    """The pass names the searches that a plain look for each hint would, in any text, whatever hints overlap."""
    drawn = random.Random(1)
    hints = [("".join(drawn.choice("abc") for _ in range(drawn.randint(1, 4))),) for _ in range(200)]
    hints.append(("пар", "b"))
    searches = Searches([Search(one, lambda _, __, one=one: [Span("/".join(one), 0, 0)]) for one in hints])
    for _ in range(500):
        text = "".join(drawn.choice("abcdк\0ykпар") for _ in range(drawn.randint(0, 12)))
        expected = sorted("/".join(one) for one in hints if any(hint in text for hint in one))
        assert sorted(span.kind for span in searches.of(text, text)) == expected


@pytest.mark.parametrize(
    "page",
    [
        "<p>Password: <b>{}</b></p>",
        "<td>Password</td> <td>{}</td>",
        "<dt>Password</dt><dd>{}</dd>",
        "<li>my password is <em>{}</em></li>",
        "<span>Password:</span> <code>{}</code>",
    ],
)
def test_what_a_page_says_in_several_marks_is_found(page: str) -> None:
    """The value goes, and the marks around it stay."""
    text = page.format(WORD)
    assert redacted(text, found(text)) == page.format("[redacted: password]")


@pytest.mark.parametrize("before", range(0, 20, 4))
def test_a_code_over_several_lines_is_one(before: int) -> None:
    """Wherever the lines of a mail's Base64 end, nothing of the password stays."""
    told = "x" * before + " a note about the office. " * 5 + f"my password is {WORD} and more text follows"
    text = base64.encodebytes(told.encode()).decode()
    spans = found(text)
    assert spans
    assert WORD[-4:].encode() not in base64.b64decode(redacted(text, spans).replace("[redacted: password]", ""))


def test_no_code_is_opened_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in an opened code is read as deep as any text, and no further code in it searched for its dress: so
    often each is opened, however deep they lie, and no text costs more than its length."""
    told = f"my password is {WORD} and nothing else"
    text = base64.b64encode(told.encode()).decode()
    assert found(text)
    for _ in range(12):
        text = base64.b64encode(f"\ufb01%41 {text}".encode()).decode()
    opened, times = blobs.text_of, []
    monkeypatch.setattr(blobs, "text_of", lambda run: times.append(run) or opened(run))
    assert not found(text)
    assert len(times) <= 16


@pytest.mark.parametrize(
    "part",
    ["password is a ", "login a/", "user a pass ", "curl -u ", "seed phrase: ", "abandon ", "1. able ",
    "cookie: a=b; ", "%41",
     "QUJD", "414243", "ssn ", "1 is my ssn ", "4 ", "4.", "----- BEGIN ", '"kty":"d":"', "door code for ", "mysql -",
     "bearer ", "sid=", "connect.sid=", "/sessionid=",
     "pin for ", "M.", "dni ", "aadhaar ", "Private-Lines: 1 ", "://a:b", "authorization: ", "docker login ", "ghp_",
     "re_", "\u0664", "-AAAA", "-", "-AAAA%", "backup code 1a2b ",
     "a1b2c3! is my password ", "passwords:\n a: passwords:", "login('a','", "WIFI:P:", "WIFI:S:", "sqlplus a/",
     "ssid a", "'password','", "'password', 'sunny_7') ["],
)  # fmt: skip
def test_the_time_is_linear(part: str) -> None:
    """100 KB of what a search begins with takes some four times as long as a quarter of it."""

    def taken(chars: int) -> Iterator[float]:
        text = f"AAAA AzFu AzDO +ASt Q~ {(part * chars)[:chars]}"
        for _ in range(5):
            began = time.process_time()
            found(text)
            yield time.process_time() - began

    most = 9 * min(taken(25_000)) + 0.1
    assert any(one < most for one in taken(100_000))  # the first that is quick enough is the last
