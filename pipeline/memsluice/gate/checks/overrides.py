"""An order to set aside what an agent was told before, in languages that the wording models know too little of.

"Ignore all previous instructions" needs no weighing in any language: it is held by itself. English is the wording
models' and the published patterns'. A pattern has a verb in a form that asks, instructions or rules, and which of them:
those before, all, the system's, those on safety; so what was ignored, and what must not be, is none. Every gap is
bounded: the time is linear in the text, at worst a tenth of a second for one of the largest size that begins an order
everywhere.
"""

import re
import unicodedata
from dataclasses import dataclass

from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.checks.spelled import Spelled

FOUND = "overrides.found"
_GAP = r"[^.!?。！？؟।]{0,30}?"
_BEGINS = re.compile(
    r"(?:^|[^\w\s'’] ?"
    r"|\b(?:et|puis|alors|maintenant|veuillez|plaît|y|luego|entonces|ahora|e|ed|poi|ora|agora|favore?)\s)$"
)
"""What a clause begins behind: in Romance languages one form of the verb asks, and tells, too. It asks there alone."""
_BEFORE = 16


@dataclass(frozen=True, slots=True)
class Language:
    """The pattern of one language, and what a text has in which it may occur."""

    name: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    begins: bool
    """Whether only what begins a clause is an order."""

    def occurs_in(self, text: str) -> bool:
        """Whether it occurs in a normalised text that has one of the stems."""
        for found in self.pattern.finditer(text):
            first = found.start()
            if not self.begins or _BEGINS.search(text[max(0, first - _BEFORE) : first]):
                return True
        return False


def _language(
    name: str, stems: str, verb: str, which: str, what: str, *, last: bool = False, begins: bool = False
) -> Language:
    """Return a language whose verb stands before its object, or ``last``; which of them stands on either side."""
    objects = rf"(?:(?:{which}){_GAP}(?:{what})|(?:{what}){_GAP}(?:{which}))"
    order = rf"{objects}{_GAP}(?:{verb})" if last else rf"(?:{verb}){_GAP}{objects}"
    return Language(name, tuple(_folded(stems).split("|")), re.compile(_folded(order)), begins)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


LANGUAGES = (
    _language(
        "ar",
        "تجاهل|انس|تتبع|تلتزم",
        "(?<!ت)تجاهل|(?<!ت)انس[َى]? |لا تتبع|لا تلتزم",
        "السابق|السلامة|الأمان|أعلاه|النظام|جميع|كل |كافة",
        "تعليمات|الأوامر|القواعد|قواعد|التوجيهات|الإرشادات",
    ),
    _language(
        "bn",
        "উপেক্ষা|অগ্রাহ্য|ভুলে যা",
        "(?:উপেক্ষা|অগ্রাহ্য) কর(?!া যাবে না|বেন না|ো না)|ভুলে যা(?:ও|ন)(?! না)",
        "আগের|পূর্বের|পূর্ববর্তী|সব|সমস্ত|সিস্টেম|নিরাপত্তা",
        "নির্দেশ|আদেশ|নিয়ম",
        last=True,
    ),
    _language(
        "cs",
        "gnoruj|zapomeň|nedodržuj|neřiď",
        r"(?<!ne)(?:ignoruj(?:te)?|zapomeň(?:te)?)\b|nedodržuj(?:te)?\b|neřiď(?:te)? se\b",
        "předchoz|všechn|dřívějš|výše|systémov|bezpečnost",
        "instrukc|pokyn|příkaz|pravid",
    ),
    _language(
        "de",
        "ignorier|missacht|vergiss|vergessen sie|befolge",
        r"(?:ignorier(?:e|en sie)?|missacht(?:e|en sie)|vergiss|vergessen sie)\b(?! (?:bitte )?nicht\b)"
        r"|befolgen? (?:sie )?(?:keine|nicht)\b",
        "vorherig|bisherig|vorangegangen|vorhergehend|obig|früher|alle|sämtlich|system|sicherheits",
        "anweisung|instruktion|befehl|regel|vorgabe|richtlinie",
    ),
    _language(
        "el",
        "αγνόησε|αγνοήστε|ξέχασε|ξεχάστε|παράβλεψε",
        r"(?<!μην )\b(?:αγνόησε|αγνοήστε|ξέχασε|ξεχάστε|παράβλεψε)\b",
        "προηγούμεν|όλες|όλους|παραπάνω|συστήματος|ασφαλείας",
        "οδηγίες|εντολές|κανόνες",
    ),
    _language(
        "es",
        "ignor|olvid|caso omiso|no sigas|no siga|desobede|descart",
        r"\b(?:ignor(?:a|e|en)|olvid(?:a|e|en|ate de)|(?:haz|haga) caso omiso|no sigas?|desobedece|descarta)\b",
        "anterior|previ[ao]s|de arriba|sistema|seguridad|tod[ao]s",
        "instrucci|indicaci|reglas|órdenes|normas",
        begins=True,
    ),
    _language(
        "fa",
        "نادیده بگیر|فراموش کن|رعایت نکن|پیروی نکن",
        "نادیده بگیر|فراموش کن|رعایت نکن|پیروی نکن",
        "قبلی|پیشین|بالا|امنیتی|همه|تمام|سیستم",
        "دستور|قوانین|قواعد",
        last=True,
    ),
    _language(
        "fr",
        "ignor|oubli|ne suis|ne suivez|abstraction",
        r"\b(?:ignore[zr]?|oublie[zr]?|ne (?:suis|suivez) (?:plus|pas)|(?:fais|faites) abstraction)\b"
        r"(?! (?:pas|jamais)\b)",
        "précédent|antérieur|ci-dessus|système|sécurité|tou(?:te)?s",
        "instruction|consigne|règles|ordres|directive",
        begins=True,
    ),
    _language(
        "he",
        "התעלמ|התעלם|שכח|אל תציית",
        r"(?<!אל )(?<!ת)(?:התעלם|התעלמי|התעלמו|שכח|שכחי|שכחו)\b|אל תציית",
        "הקודמות|הקודמים|הבטיחות|המערכת|כל ",
        "הוראות|הכללים|כללי|הפקודות",
    ),
    _language(
        "hi",
        "अनदेखा कर|नज़रअंदाज़ कर|नजरअंदाज कर|उपेक्षा कर|भूल जा|पालन न|पालन मत|मत मान",
        "(?:अनदेखा|नज़रअंदाज़|नजरअंदाज|उपेक्षा) कर(?!ना मना)(?!ने से)|भूल जा(?:ओ|एँ|एं|इए)|पालन (?:न|मत) कर|मत मान",
        "पिछल|पहले|पूर्व|ऊपर|सभी|सारे|सिस्टम|सुरक्षा",
        "निर्देश|आदेश|नियम|हिदायत",
        last=True,
    ),
    _language(
        "id",
        "abaikan|lupakan|jangan ikuti|jangan patuhi",
        r"(?<!jangan )\b(?:abaikan|lupakan)\b|jangan (?:ikuti|patuhi)\b",
        "sebelumnya|di atas|sistem|keamanan|semua|seluruh|segala",
        "instruksi|perintah|aturan|petunjuk|arahan",
    ),
    _language(
        "it",
        "ignor|dimentic|non seguire|trascur",
        r"\b(?:ignor(?:a|ate|i)|dimentic(?:a|ate|hi)|non seguire|trascura)\b",
        "precedent|sopra|sistema|sicurezza|tutt[ei]",
        "istruzion|regol|ordini|comandi|indicazion",
        begins=True,
    ),
    _language(
        "ja",
        "無視|忘れ|従わない|従うな|破棄し",
        "無視(?:して(?!は|いた|いる|しま)|せよ|しろ|しなさい|すること|し、|するように)|忘れ(?:て(?!は|いた|いる|しま)|ろ|なさい|ること)"
        "|従わない(?:で|こと)|従うな|破棄し(?:て(?!は|いた|いる)|ろ|なさい)",
        "これまで|今まで|以前|前の|上記|上の|先ほど|先の|すべて|全て|全部|システム|安全",
        "指示|命令|ルール|規則|プロンプト|制約|指令",
        last=True,
    ),
    _language(
        "ko",
        "무시|잊어|잊고|잊으|따르지",
        "무시(?:하고|하세요|하라|하십시오|하며|하시오|해(?!서는|선|도|야))"
        "|잊(?:어(?!버렸|서는)|고 |으세요|으라)|따르지 (?:마|말)",
        "이전|앞선|앞의|위의|지금까지|기존|모든|시스템|안전",
        "지시|명령|규칙|지침|프롬프트|제한",
        last=True,
    ),
    _language(
        "nl",
        "negeer|vergeet|volg",
        r"\bnegeer\b(?! niet)|\bvergeet\b(?! niet)|\bvolg\b(?=[^.!?]{0,60}\bniet\b)",
        "alle|vorige|eerdere|voorgaande|bovenstaande|systeem|veiligheids",
        "instructie|aanwijzing|opdracht|regels",
    ),
    _language(
        "pl",
        "gnoruj|zapomnij|pomiń|nie przestrzegaj|nie stosuj",
        r"(?<!nie )\b(?:zignoruj(?:cie)?|ignoruj(?:cie)?|zapomnij(?:cie)?|pomiń(?:cie)?)\b|nie (?:przestrzegaj|stosuj)",
        "poprzedni|wcześniejsz|wszystki|powyższ|systemow|bezpieczeństw",
        "instrukcj|poleceń|polecenia|zasad|reguł|wskazów",
    ),
    _language(
        "pt",
        "ignor|esque|desconsider|não siga",
        r"\b(?:ignor(?:e|a|em)|esque(?:ça|ce|çam)|desconsider(?:e|em)|não siga)\b",
        "anterior|prévi[ao]s|acima|sistema|segurança|tod[ao]s",
        "instruç|regras|ordens|comandos|orientaç",
        begins=True,
    ),
    _language(
        "ru",
        "гнорируй|забудь|не следуй|не соблюдай|не выполняй|отбрось",
        r"(?<!не )\b(?:про)?игнорируй(?:те)?\b|(?<!не )\bзабудь(?:те)?\b"
        r"|не (?:следуй|соблюдай|выполняй)(?:те)?\b|\bотбрось(?:те)?\b",
        "предыдущ|прежн|прошл|ранее|все |всех|любы|системн|вышеу|безопасност",
        "инструкц|указани|правил|команд|промпт|ограничен",
    ),
    _language(
        "sv",
        "ignorera|bortse|glöm|strunta",
        r"(?<!inte )\b(?:ignorera|bortse från|glöm|strunta i)\b(?! inte)",
        "tidigare|föregående|alla|ovanstående|systemets|säkerhets",
        "instruktion|regler|anvisning",
    ),
    _language(
        "th",
        "เพิกเฉย|ละเว้น|ลืม|อย่าทำตาม|ไม่ต้องสนใจ|ไม่ต้องทำตาม",
        "(?<!อย่า)(?:เพิกเฉย|ละเว้น|ลืม)|อย่าทำตาม|ไม่ต้องสนใจ|ไม่ต้องทำตาม",
        "ก่อนหน้า|ทั้งหมด|ด้านบน|ระบบ|ความปลอดภัย|ทุก",
        "คำสั่ง|คำแนะนำ|กฎ|ข้อกำหนด",
    ),
    _language(
        "tr",
        "yok say|görmezden gel|unut|dikkate alma|uyma|göz ardı et",
        r"yok say(?!ma)|görmezden gel(?!me)|\bunut(?:un|unuz)?\b|dikkate alma(?:yın)?\b|\buyma(?:yın|yınız)?\b"
        "|göz ardı et(?!me)",
        "önceki|yukarıdaki|tüm|bütün|sistem|güvenlik",
        "talimat|komut|kural|yönerge",
        last=True,
    ),
    _language(
        "uk",
        "гноруй|забудь|не виконуй|не дотримуйся|знехтуй",
        r"(?<!не )\b(?:про)?ігноруй(?:те)?\b|(?<!не )\bзабудь(?:те)?\b"
        r"|не (?:виконуй|дотримуйся|дотримуйтеся)|\bзнехтуй",
        "попередн|усі |всі |усіх|всіх|системн|безпек",
        "інструкц|вказівк|правил|команд|обмежен",
    ),
    _language(
        "vi",
        "bỏ qua|phớt lờ|quên|không tuân theo|đừng tuân",
        r"(?<!đừng )(?<!không )(?<!không được )\b(?:bỏ qua|phớt lờ|quên)\b|(?:không|đừng) tuân theo",
        "trước|ở trên|an toàn|hệ thống|tất cả|mọi",
        "hướng dẫn|chỉ dẫn|chỉ thị|lệnh|quy tắc",
    ),
    _language(
        "zh",
        "忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|遵守|遵循|绕过|繞過|抛开",
        "(?<![不别勿])(?<!不要)(?<!不得)(?<!不能)(?:忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|绕过|繞過|抛开)"
        "|(?:不要?再?|不必|无需|無需|別再?|别再?)遵[守循]",
        "之前|以前|先前|此前|上述|以上|前面|所有|全部|任何|一切|系统|系統|安全",
        "指示|指令|规则|規則|规定|規定|提示|命令|限制|约束|約束",
    ),
)


_STEMS = tuple((stem, language) for language in LANGUAGES for stem in language.stems)
_ASCII = tuple((stem, language) for stem, language in _STEMS if stem.isascii())


def find(text: Spelled) -> str | None:
    """Return the language (ISO 639) in which a text, or what its codes spell, orders that; None: in none."""
    found = _find(text.seen)
    return _find(text.hidden) if found is None and text.hidden is not None else found


def check(content: Spelled, asks: Decision) -> Finding | None:
    """Return a finding that asks for so much where a text gives such an order."""
    language = find(content)
    return None if language is None else Finding(FOUND, asks, {"language": language})


def _find(text: str) -> str | None:
    """Return the first language whose order occurs. Nearly all texts have no stem of any, and end there."""
    tried = set[str]()
    for stem, language in _ASCII if text.isascii() else _STEMS:
        if stem in text and language.name not in tried:
            if language.occurs_in(text):
                return language.name
            tried.add(language.name)
    return None
