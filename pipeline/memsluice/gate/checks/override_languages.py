"""The words of an order to set aside what one was told, by language; :mod:`.overrides` finds it in a text.

A verb in a form that asks, instructions or rules, and which of them: those before, all, the system's, those on safety.
Where the verb stands before its object it begins a clause, as what tells of somebody does not; where it stands behind,
it has an ending that asks, or what follows in the sentence has. So what was ignored, what must not be, and an order
that is quoted by itself are none. Every gap is bounded. Written by hand; the phrases are of no data set.
"""

import re
import unicodedata
from dataclasses import dataclass

_GAP = r"[^.!?。！？؟।,;，；،؛]{0,30}?"
_LAST_GAP = r"[^.!?。！？؟।]{0,30}?"
_END = r"(?=\W{0,16}$|[\n.!,;:)\"”。！，、；」』।،؛])"
_FOLDED = str.maketrans("άέήίόύώ", "αεηιουω", "\u0307\u0301")
"""Capitals have no accent in Greek, and İ is an i with a dot above."""
_BEGINS = re.compile(
    r"(?:^|[\n.!?…。！？؟।,;:，；：،؛、()\[\]\"“”„«»「」『』'’*#>|/–—-]\s?"
    r"|\b(?:and|then|now|please|also|just|so|must|et|puis|alors|maintenant|veuillez|plaît|y|luego|entonces|ahora|e|ed|poi|ora|agora|favore?|bitte|und|dann|jetzt"
    r"|nun|sofort|en|nu|dan|alsjeblieft|och|sedan|vänligen|i|oraz|teraz|proszę|następnie|a|nyní|teď|prosím|pak|и|а|теперь"
    r"|пожалуйста|просто|і|й|та|тепер|ласка|και|τωρα|παρακαλω|sekarang|tolong|harap|mohon|silakan|lalu|harus|và|hãy|xin"
    r"|vui lòng|bây giờ|ثم|الآن|رجاء|رجاءً|فضلك|يرجى|ו?עכשיו|אנא|נא)\s"
    r"|请|請|请你|現在|现在|你要|您要|必须|必須|务必|務必|立即|立刻|直接|完全|起|并|並|然后|然後|โปรด|กรุณา|จง|ให้|และ|แล้ว|ช่วย)$"
)
"""What a clause begins behind."""
_BEFORE = 16
_OPENS = re.compile(r"(?<!\":)(?<!\": )(?<![\[{,])(?<![\[{,] )[\"']$|[“”„«»‘’「『]\s?$")
"""A quotation mark that opens no value of a record …"""
_CLOSES = re.compile(r"[^.!?。！？\n\"'“”„«»‘’「」『』]{0,24}[.!?。！？]?\s?[\"'“”«»‘’」』]")
"""… and the one that closes behind the order: it is named, and not given."""


def folded(text: str) -> str:
    """Return a normalised text as the patterns are written."""
    return text if text.isascii() else text.translate(_FOLDED)


def _written(text: str) -> str:
    return folded(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class Language:
    """The pattern of one language (ISO 639), and what a text has in which it may occur."""

    name: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    begins: bool
    """Whether only what begins a clause is an order."""

    def first_in(self, text: str) -> tuple[int, int] | None:
        """Return where it occurs first in a normalised and folded text that has one of the stems."""
        for found in self.pattern.finditer(text):
            first, end = found.span()
            before = text[max(0, first - _BEFORE) : first]
            if (not self.begins or _BEGINS.search(before)) and not (_OPENS.search(before) and _CLOSES.match(text, end)):
                return first, end
        return None


def _objects(which: str, what: str, gap: str) -> str:
    return rf"(?:(?:{which}){gap}(?:{what})|(?:{what}){gap}(?:{which}))"


def _first(
    name: str, stems: str, verb: str, which: str, what: str, *, gap: str = _GAP, then: str = "", turned: str = ""
) -> Language:
    """Return a language whose verb stands before its object, or behind what it is ``turned`` by after it.

    ``then`` is what follows both.
    """
    objects = _objects(which, what, _GAP)
    pattern = rf"(?:{verb}){gap}{objects}{then}"
    if turned:
        pattern = rf"(?:{pattern}|(?:{turned}){objects}{_GAP}(?:{verb}){then})"
    return Language(name, tuple(_written(stems).split("|")), re.compile(_written(pattern)), begins=True)


def _last(name: str, stems: str, verb: str, which: str, what: str, *, unless: str = "(?!)") -> Language:
    """Return a language whose verb stands last; ``unless`` one of these stands before it."""
    between = rf"(?:(?!{unless})[^.!?。！？؟।]){{0,30}}?"
    pattern = rf"{_objects(which, what, _LAST_GAP)}{between}(?:{verb})"
    return Language(name, tuple(_written(stems).split("|")), re.compile(_written(pattern)), begins=False)


_JA_ASKS = "(?<!ないで)(?:ください|下さい)|なさい|せよ|しろ|してくれ|従え"
_KO_ASKS = rf"(?:(?<!마)(?:세요|십시오|시오)|(?<![더마])라){_END}"
_RULES = r"\b(?:instructions?|prompts?|rules?|guidelines?|directives?|directions|commands?|guardrails|safeguards)\b"
_NOT_OF = r"(?!\s(?:in|inside|from|within|found|that|which|on|of|about|for|regarding|given|as|at|by|to|with|when|if)\b)"
"""What is said of some rules alone, "in web pages", "about the newsletter", is a wish, and the models' to judge."""


def _english() -> Language:
    """Return English, whose verb has one form: behind "and" it tells as often as it asks, so there the rules must be
    those before, and not all or somebody's own."""
    verb = r"\b(?:ignore|disregard|forget|discard|override)\b"
    before = _objects(r"\b(?:previous|prior|above|earlier|preceding|foregoing|initial|original|system)\b", _RULES, _GAP)
    every = _objects(r"\b(?:all|your|safety|security)\b", _RULES, _GAP)
    pattern = rf"(?:{verb}{_GAP}{before}|(?<!\band\s){verb}{_GAP}{every}){_NOT_OF}"
    stems = ("ignore", "disregard", "forget", "discard", "override")
    return Language("en", stems, re.compile(_written(pattern)), begins=True)


LANGUAGES = (
    _english(),
    _first(
        "ar",
        "تجاهل|انس|تتبع|تلتزم",
        "[وف]?(?:تجاهل(?:وا)?|انسَ?|لا تتبع|لا تلتزم)",
        "السابق|السلامة|الأمان|أعلاه|النظام|جميع|كل |كافة",
        "تعليمات|الأوامر|القواعد|قواعد|التوجيهات|الإرشادات",
        gap=r"\s(?:عن |ب)?(?:ال)?",
    ),
    _last(
        "bn",
        "উপেক্ষা|অগ্রাহ্য|ভুলে যা",
        "(?:উপেক্ষা|অগ্রাহ্য) কর(?:ো|ুন)(?![\u0980-\u09ff]| না)|ভুলে যা(?:ও|ন)(?![\u0980-\u09ff]| না)",
        "আগের|পূর্বের|পূর্ববর্তী|সব|সমস্ত|সিস্টেম|নিরাপত্তা",
        "নির্দেশ|আদেশ|নিয়ম",
    ),
    _first(
        "cs",
        "gnoruj|zapomeň|nedodržuj|neřiď",
        r"(?<!ne)(?:ignoruj(?:te)?|zapomeň(?:te)?)\b|nedodržuj(?:te)?\b|neřiď(?:te)? se\b",
        "předchoz|všechn|dřívějš|výše|systémov|bezpečnost",
        "instrukc|pokyn|příkaz|pravid",
    ),
    _first(
        "de",
        "ignorier|missacht|vergiss|vergessen sie|befolge",
        r"(?:ignorier(?:e|en sie)?|missacht(?:e|en sie)|vergiss|vergessen sie)\b(?! (?:bitte )?(?:nicht|niemals|nie)\b)"
        r"|befolgen? (?:sie )?(?:keine|nicht)\b",
        "vorherig|bisherig|vorangegangen|vorhergehend|obig|früher|alle|sämtlich|system|sicherheits",
        "anweisung|instruktion|befehl|regel|vorgabe|richtlinie",
        then=r"(?![^.!?,;]{0,40}\b(?:nicht|niemals|nie)\b)",
    ),
    _first(
        "el",
        "αγνοησε|αγνοηστε|ξεχασε|ξεχαστε|παραβλεψ",
        r"\b(?:αγνοησε|αγνοηστε|ξεχασε|ξεχαστε|παραβλεψε|παραβλεψτε)\b",
        "προηγουμεν|ολες|ολους|παραπανω|συστηματος|ασφαλειας",
        "οδηγιες|εντολες|κανονες",
    ),
    _first(
        "es",
        "ignor|olvid|caso omiso|no sigas|no siga|desobede|descart",
        r"\b(?:ignor(?:a|e|en)|(?:debes?|tienes que|hay que) (?:ignorar|olvidar)|olvid(?:a|e|en|ate de)"
        r"|(?:haz|haga) caso omiso|no sigas?|desobedece|descarta)\b",
        "anterior|previ[ao]s|de arriba|sistema|seguridad|tod[ao]s",
        "instrucci|indicaci|reglas|órdenes|normas",
    ),
    _last(
        "fa",
        "نادیده بگیر|فراموش کن|رعایت نکن|پیروی نکن",
        rf"(?:نادیده بگیر|فراموش کن|رعایت نکن|پیروی نکن)(?:ید)?(?:{_END}| و )",
        "قبلی|پیشین|بالا|امنیتی|ایمنی|همه|تمام|سیستم",
        "دستور|قوانین|قواعد",
        unless="نباید|هرگز",
    ),
    _first(
        "fr",
        "ignor|oubli|ne suis|ne suivez|abstraction",
        r"\b(?:ignorez?|oubliez?|(?:il faut|tu dois|vous devez|veuillez) (?:ignorer|oublier)"
        r"|ne (?:suis|suivez) (?:plus|pas)|(?:fais|faites) abstraction)\b(?! (?:pas|jamais)\b)",
        "précédent|antérieur|ci-dessus|système|sécurité|tou(?:te)?s",
        "instruction|consigne|règles|ordres|directive",
    ),
    _first(
        "he",
        "התעלמ|התעלם|שכח|אל תציית",
        r"ו?(?:התעלם|התעלמי|התעלמו|שכח|שכחי|שכחו)\b|אל תציית",
        "הקודמות|הקודמים|הבטיחות|המערכת|כל ",
        "הוראות|הכללים|כללי|הפקודות",
        gap=r"\s(?:את )?[מל]?",
    ),
    _last(
        "hi",
        "अनदेखा |नज़रअंदाज़ |नजरअंदाज |उपेक्षा |भूल जा|पालन न|पालन मत|मत मान",
        "(?:(?:अनदेखा|नज़रअंदाज़|नजरअंदाज|उपेक्षा) (?:कर(?:ो|ें|िए|िये| दो| दें| दीजिए)|कीजिए)|भूल जा(?:ओ|एँ|एं|इए)"
        "|पालन (?:न|मत) कर(?:ो|ें|िए)|मत मान(?:ो|ें|िए))(?! तो)",
        "पिछल|पहले|पूर्व|ऊपर|सभी|सारे|सिस्टम|सुरक्षा",
        "निर्देश|आदेश|नियम|हिदायत",
        unless="कभी",
    ),
    _first(
        "id",
        "abaikan|lupakan|jangan ikuti|jangan patuhi",
        r"\b(?:abaikan|lupakan)\b|\bjangan (?:ikuti|patuhi)\b",
        "sebelumnya|di atas|sistem|keamanan|semua|seluruh|segala",
        "instruksi|perintah|aturan|petunjuk|arahan",
    ),
    _first(
        "it",
        "ignor|dimentic|non seguire|trascur",
        r"\b(?:ignor(?:a|ate|i)|dimentic(?:a|ate|hi)|non seguire|trascura)\b",
        "precedent|sopra|sistema|sicurezza|tutt[ei]",
        "istruzion|regol|ordini|comandi|indicazion",
    ),
    _last(
        "ja",
        "無視|忘れ|従わない|従うな|破棄し",
        rf"(?:無視し|忘れ)(?:て(?:{_JA_ASKS}|ほしい|よい|いい|構わない)|て?[、,]?[^。！？!?]{{1,60}}?(?:{_JA_ASKS})|て(?=\W{{0,16}}$|[\n。.！!」』]))"
        rf"|無視(?:せよ|しろ|しなさい|するように{_END}|すること{_END})|忘れ(?:ろ|なさい|ること{_END})"
        rf"|従わない(?:で(?:ください|下さい|くれ)|で{_END}|こと{_END})|従うな{_END}|破棄し(?:て(?:{_JA_ASKS})|ろ|なさい)",
        "これまで|今まで|以前|前の|上記|上の|先ほど|先の|すべて|全て|全部|システム|安全",
        "指示|命令|ルール|規則|プロンプト|制約|指令",
    ),
    _last(
        "ko",
        "무시|잊어|잊고|잊으|따르지",
        rf"무시(?:하세요|하십시오|하시오|하라{_END}|해(?:라|줘|주세요)?{_END}|(?:하고|하며)[^.!?。]{{1,60}}?{_KO_ASKS})"
        rf"|잊(?:으세요|으십시오|으라{_END}|어(?:라|줘|버려|버려라|주세요)?{_END}|고[^.!?。]{{1,60}}?{_KO_ASKS})"
        rf"|따르지 (?:마(?:세요|십시오|시오|라{_END})|말(?:고 |라{_END}|아라))",
        "이전|앞선|앞의|위의|지금까지|기존|모든|시스템|안전",
        "지시|명령|규칙|지침|프롬프트|제한",
    ),
    _first(
        "nl",
        "negeer|vergeet|volg",
        r"\b(?:negeer|vergeet)\b(?! (?:\w{1,16} )?(?:niet|nooit)\b)|\bvolg\b(?=[^.!?,;]{0,40}\bniet\b)",
        "alle|vorige|eerdere|voorgaande|bovenstaande|systeem|veiligheids",
        "instructie|aanwijzing|opdracht|regels",
    ),
    _first(
        "pl",
        "gnoruj|gnorować|zapomn|pomi|nie przestrzegaj|nie stosuj",
        r"\b(?:zignoruj(?:cie)?|ignoruj(?:cie)?|zapomnij(?:cie)?|pomiń(?:cie)?"
        r"|proszę (?:zignorować|zapomnieć|pominąć))\b|\bnie (?:przestrzegaj|stosuj)(?:cie)?\b",
        "poprzedni|wcześniejsz|wszystki|powyższ|systemow|bezpieczeństw",
        "instrukcj|poleceń|polecenia|zasad|reguł|wskazów",
    ),
    _first(
        "pt",
        "ignor|esque|desconsider|não siga",
        r"\b(?:ignor(?:e|a|em)|deves? ignorar|esque(?:ça|ce|çam)|desconsider(?:e|em)|não siga)\b",
        "anterior|prévi[ao]s|acima|sistema|segurança|tod[ao]s",
        "instruç|regras|ordens|comandos|orientaç",
    ),
    _first(
        "ru",
        "гнориру|гнорировать|забудь|забыть|не следуй|не соблюдай|не выполняй|отбрось",
        r"\b(?:про)?игнорируй(?:те)?\b|\bзабудь(?:те)?\b|\bне (?:следуй|соблюдай|выполняй)(?:те)?\b|\bотбрось(?:те)?\b"
        r"|\b(?:необходимо|нужно|следует|надо) (?:игнорировать|забыть)\b",
        "предыдущ|прежн|прошл|ранее|все |всех|любы|системн|вышеу|безопасност",
        "инструкц|указани|правил|команд|промпт|ограничен",
    ),
    _first(
        "sv",
        "ignorera|bortse|glöm|strunta",
        r"\b(?:ignorera|bortse från|glöm|strunta i)\b(?! (?:inte|aldrig)\b)",
        "tidigare|föregående|alla|ovanstående|systemets|säkerhets",
        "instruktion|regler|anvisning",
    ),
    _first(
        "th",
        "เพิกเฉย|ละเว้น|ลืม|อย่าทำตาม|ไม่ต้องสนใจ|ไม่ต้องทำตาม",
        "เพิกเฉย|ละเว้น|ลืม|อย่าทำตาม|ไม่ต้องสนใจ|ไม่ต้องทำตาม",
        "ก่อนหน้า|ทั้งหมด|ด้านบน|ระบบ|ความปลอดภัย|ทุก",
        "คำสั่ง|คำแนะนำ|กฎ|ข้อกำหนด",
    ),
    _last(
        "tr",
        "yok say|görmezden gel|unut|dikkate alma|uyma|göz ardı et",
        rf"\b(?:yok say(?:ın|ınız)?|görmezden gel(?:in|iniz)?|unut(?:un|unuz)?|göz ardı et(?:in|iniz)?)(?:{_END}| ve )"
        rf"|\b(?:dikkate alma|uyma)(?:yın|yınız)?{_END}",
        "önceki|yukarıdaki|tüm|bütün|sistem|güvenlik",
        "talimat|komut|kural|yönerge",
    ),
    _first(
        "uk",
        "гноруй|забудь|не виконуй|не дотримуйся|знехтуй",
        r"\b(?:про)?ігноруй(?:те)?\b|\bзабудь(?:те)?\b|\bне (?:виконуй|дотримуйся|дотримуйтеся)\b|\bзнехтуй(?:те)?\b",
        "попередн|усі |всі |усіх|всіх|системн|безпек",
        "інструкц|вказівк|правил|команд|обмежен",
    ),
    _first(
        "vi",
        "bỏ qua|phớt lờ|quên|đừng tuân",
        r"\b(?:bỏ qua|phớt lờ|quên)\b|\bđừng tuân theo\b",
        "trước|ở trên|an toàn|hệ thống|tất cả|mọi",
        "hướng dẫn|chỉ dẫn|chỉ thị|lệnh|quy tắc",
    ),
    _first(
        "zh",
        "忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|遵守|遵循|绕过|繞過|抛开|拋開",
        "(?:忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|绕过|繞過|抛开|拋開)(?![了过過的])"
        "|(?:不要再?|不必|不用|无需|無需|別再?|别再?)遵[守循]",
        "之前|以前|先前|此前|上述|以上|前面|所有|全部|任何|一切|系统|系統|安全",
        "指示|指令|规则|規則|规定|規定|提示|命令|限制|约束|約束",
        then=rf"(?:{_END}|(?=并|並|然后|然後|而|且|和))",
        turned="[把将將]",
    ),
)
