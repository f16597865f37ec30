"""Ordinary sentences about passwords stay as they are, also where their words are verbs of another language; and what
is found beside them: passwords in tables, numbers with other signs between their groups.

Values are made here of parts, so that no scanner of repositories takes this file for a leak.
"""

import pytest

from memsluice.gate.checks.sensitive import found, redacted

WORD = "hunter" + "22"
GROUPS = ("4111", "1111", "1111", "1111")
NAMES_OF_THINGS = "apple river stone table chair window garden flower bottle candle mirror blanket"
ORDINARY = [
    "Reset the password on srv-db01.corp.example before Friday.", "Migrate all passwords to Bitwarden.",
    "Add the password to config/prod.yml", "Add the password to .env", "Add password to docker-compose.yml",
    "Write the password to stdin", "Does anybody have the password to Budget2026.xlsx?",
    "Forward the password to lena@corp.example", "I gave the password to Bob42 yesterday",
    "I changed the password on Router7.", "Never send passwords to helpdesk@corp.example.",
    "Username e password e OTP2 sono richiesti.", "Sync passwords to iCloud+", "Give the passcode to Tom&Jerry",
    "Reset the root password on db1@eu-west.", "Rotate the password on Monday@9",
    "I need the password to Q3_report.xlsx",
    "The password to Wi-Fi@Home hangs on the fridge", "Scrivi la password e invia@esempio.it",
    "Never give your password to anyone@home!", "The password on Bob's MacBookPro16 is shared",
    "Reset the password on db-prod-3 and tell Marta.", "The password for wifi-guest5 is printed on the wall.",
    "Please move the passwords to 1Password before the audit.",
    "Write the passwords to vault/team7.kdbx, not to the wiki.",
    "We rotated the password on mail2.example.org last night.", "She sent the password to ops@example.net by mistake.",
    "Please reset the password of Bob42 and send it to Anna7.", "Reset the password for access to Grafana.",
    "Reset the password for login to Server2.", "Update the passwords to Bitwarden.",
    "Move password to Vault9 by cron3.",
    "Change the password to Budget2026.xlsx before the meeting.", "Set the password to expire after 90 days.",
    "Reset the password to helpdesk2@corp.example, they asked.", "The password for Anna goes to Bob42 on Friday.",
    "The password for the trip to Rome2026 is in the vault.", "We changed the password to comply with ISO27001.",
    "I forgot which password to Netflix4K we use.", "Add the wifi key to README2.md today.",
    "Wir wissen nicht, mit welchem Passwort er Windows11 entsperrt.", "Bitte die Passwörter in KeePass2 ablegen.",
    "Das Passwort für Windows10 wurde zurückgesetzt.", "Wachtwoord je account2 wijzigen.",
    "Stuur het wachtwoord naar beheer@voorbeeld.nl.", "Le mot de passe et le code2FA sont obligatoires.",
    "Contraseña y token2 son obligatorios.", "Envía la contraseña a soporte@ejemplo.es.",
    "A senha e o token2 foram trocados.",
    "La password e il PIN1 sono nella busta.", "Hasło do Windows11 wygasło.", "Heslo je potřeba změnit každý měsíc.",
    "Hasło to ciąg znaków który trzeba zmieniać co miesiąc.", "Пароль это последовательность символов для входа.",
    "Parola este obligatorie pentru toate conturile noi.", "Salasana on vaihdettava 90 päivän välein.",
    "Parool on aegunud juba eelmisel nädalal kõigil.", "Lozinka je promijenjena jučer za sve korisnike.",
    "La clave es trabajar todos los días juntos.", "Şifre olan dosya paylaşıldı ve silindi.",
    "Kata sandi adalah hal penting untuk dijaga.", "Mật khẩu là thông tin quan trọng cần giữ.",
    "Adgangskoden er udløbet for alle brugere nu.", "Passordet er utløpt.", "पासवर्ड Gmail2 पर भेजें",
    "Part no. 536-22-" + "1234 is out of stock.", "Catalogue item 123-45-" + "6788 ships Monday.",
    "Use pin 4711 of the connector.", f"seed words for the workshop: {NAMES_OF_THINGS}",
    "readings " + ",".join(GROUPS), "db:5432:x is the port", "docker run -p 127.0.0.1:5432:5432 postgres:16",
]  # fmt: skip
"""What a reader wrote against the rule, and what was written in many languages to try it further."""
TOLD = [
    ("I changed my password to {}", "sunflower"), ("I changed my password for Netflix to {}", "pineapple"),
    ("I changed my password to {}", "correct horse battery staple"), ("We set the password on srv1 to {}", "Tulip77!"),
    ("Rotated the root password to {}.", "Tulip77"), ("Reset all passwords to {}", "Sommer2024!"),
    ("set the password to {}", "Tulip7.Rose"), ("Use password {} there", "tulip7!"),
    ("Passordet for ruteren er {}", "Tulip77"), ("Lösenordet till routern är {}", "Tulip77"),
    ("The password for Bob's laptop is {}", "Tulip77"),
    ("my password's {}", "Tulip77"), ("mit password er {}", "Tulip77"), ("Passwordet er {}", "Tulip77"),
    ("Passordet er {}", "Tulip77"), ("Adgangskoden er {}", "solsikke"), ("hasło do banku to {}", "Lato2024"),
    ("hasło to jest {}", "Lato2024"), ("salasana on {}", "Kissa77"), ("parool on {}", "Kass2024"),
    ("a senha e {}", "gato2020"), ("parola este {}", "Pisica77"), ("lozinka je {}", "Macka77"),
    ("heslo je {}", "kocka123"), ("lykilorðið er {}", "Kisa2024"), ("पासवर्ड {} है", WORD),
    ("db.example:5432:app:bob:{}", WORD), ("Bob, {}", "536-22-" + "1234"), ("Use pin {} of the card", "4711"),
    ("seed words for my wallet: {}", NAMES_OF_THINGS), ("Order number {} was shipped", "".join(GROUPS)),
    ("{}", "/".join(GROUPS)), ("{}", " · ".join(GROUPS)), ("cards: {}", ",".join(GROUPS)),
    ("Konto {}", "DE 89 37 04 00 44 " + "05 32 01 30 00"), ("{}", "DE89.3704.0044." + "0532.0130.00"),
    ("a {} b", "-----begin rsa private " + "key-----\n"
     + "MIIEowIBAAKCAQEA" * 3 + "\n-----end rsa private " + "key-----"),
]  # fmt: skip
TABLES = [
    "| user | password |\n|---|---|\n| bob | {} |", "user,password\nbob,{}", 'user,password,x\r\nbob,"{}","a,b"\r\n',
    "name\tDB_PASSWORD\nbob\t{}\n", " user | pwd\n-----+------\n bob | {}\n(1 row)", "benutzer;passwort\nbob;{}",
    "+--+--+\n| `Wifi password` | user |\n+--+--+\n| `{}` | bob |\n+--+--+", "用户名,密码\nbob,{}",
    "user | contraseña\n:--- | ---:\nann | weak\nbob | {}",
]  # fmt: skip
OTHER_TABLES = [
    "| Feature | Password | Passkey |\n|---|---|---|\n| Phishing | weak | strong |\n| Login | supported | allowed |",
    "| Token | Value |\n|---|---|\n| spacing-2xl-desktop | 4px |", "Please send user, password\nThanks, Tommy2",
    "| name | password policy |\n|---|---|\n| bob | Tulip77 |", "year,passwords\n2019,120000\n2020,130000",
    "user,password\n\nbob,Tulip77", "user,password\nbob,x,Tulip77", "field,type,secret\nDB_PW,string,yes",
    "alice | password | none\nbob | likes | tea", "password\nTulip77",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_sentence_about_a_password_stays_whole(text: str) -> None:
    """A preposition or a conjunction is no "is", and where a password goes or is kept is no password: who reads the
    memory later needs the server, the file and the address of such a sentence."""
    assert redacted(text, found(text)) == text


@pytest.mark.parametrize(("sentence", "value"), TOLD)
def test_what_is_told_beside_such_sentences_is_found(sentence: str, value: str) -> None:
    """What a password was changed to, what each language's own verb says, and numbers and keys in other dress; a valid
    card's number stays hidden also where it is called an order's."""
    text = sentence.format(value)
    assert [text[span.start : span.end] for span in found(text)] == [value]


@pytest.mark.parametrize("table", TABLES)
def test_a_header_names_what_stands_below_it(table: str) -> None:
    """Of a table only the cells under a secret's name go; what stands beside and around them stays."""
    for value in (WORD, "Tulip77!", "swordfish"):
        text = table.format(value)
        assert redacted(text, found(text)) == table.format("[redacted: password]")


def test_every_row_below_a_header_is_read() -> None:
    """A key in the last of many rows is found, and a column of keys is of the kind that its name says."""
    keys = [f"{n:04}ab12cd34ef56ab78cd90" for n in range(50)]
    text = "user,api_key\n" + "".join(f"bob{n},{key}\n" for n, key in enumerate(keys))
    assert [(span.kind, text[span.start : span.end]) for span in found(text)] == [("api_key", key) for key in keys]


@pytest.mark.parametrize("text", OTHER_TABLES)
def test_no_other_table_is_touched(text: str) -> None:
    """What is said of passwords in a table, counts, names of tokens and lines of prose are no secrets."""
    assert found(text) == ()
