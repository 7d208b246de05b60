"""Patterns and validators of passwords: assigned, in configuration and code, or told in prose.

A word for "password" opens a candidate. The sign or verb after it decides how sure a value is:
in quotes, or after "=" in configuration, any secret counts; in prose only what is no word.
"""

import re
from collections.abc import Iterator

from assets.filtered.pii.scan import FAR, Scan, Span
from assets.filtered.pii.secret_words import is_placeholder, is_strong

# Separate patterns, for their literals make fast prefilters: names of any language and case.
_NAMES = (
    r"[Pp]assw(?:or[dt]|d)|PASSW(?:OR[DT]|D)|[Pp]wd|PWD|[Pp]ass[- ]?phrase|PASSPHRASE|[Pp]assWord",
    r"[Pp]ass[\"'`*]{0,2} ?[=:]|PASS[\"'`*]{0,2} ?[=:]|(?i:identified by [\"'])",
    r"[Kk]ennwort|[Mm]ot de passe|[Cc]ontrase[ñn]a|[Ss]enha|[Hh]as[łl]o|[Hh]eslo|[Ww]achtwoord|"
    r"[Ll]ösenord|[Aa]dgangskode|[Ss]alasana|[Pp]arol[aă]|[Pp]asscode|[Pp]assord|(?:[Mm]i|[Tt]u|"
    r"[Ll]a) clave",
    r"[Ll]ozinka|[Šš]ifra|[Şş]ifre|[Jj]elsz[oóa]|[Mm]ật khẩu|[Kk]ata sandi|requirepass|wpa[-_]psk|"
    r"PSK=|psk=|[Mm]dp ?[=:]|[Ss]lapta[žz]odis|[Pp]arole[: ]|[Pp]arool|[Gg]eslo",
    r"[Пп]арол|密码|密碼|口令|パスワード|비밀번호|비번|"
    r"الرقم السري|암호는|كلمة (?:ال)?(?:مرور|سر)|סיסמ|"
    r"पासवर्ड|รหัสผ่าน|[Κκ]ωδικό",
)
# Clues of the patterns of names, in their order.
_CLUES = (
    ("[aA][sS][sS][wW][oOdD]", "[pP][wW][dD].", "[aA][sS][sS][- ][pP][hH]", "[aA][sS][sS][pP][hH]"),
    (
        *("[aA][sS][sS][=:]", "[aA][sS][sS][\"'`* ][=:]", "[aA][sS][sS][\"'`*][\"'`* ][ =:]"),
        "[fF][iI][eE][dD] [bB][yY] [\"']",
    ),
    (
        *("ennwort", "ot de passe", r"ontrase[n\xc3]", "enha", "aslo", "asło", "eslo"),
        *("achtwoord", "senord", "dgangskode", "alasana", r"arol[a\xc4]", "asscode", "assord"),
        " clave",
    ),
    (
        *("ozinka", r"[\xa0\xa1]ifra", r"[\x9e\x9f]ifre", r"elsz[oa\xc3]", "ật khẩu", "ata sandi"),
        *("requirepass", "wpa[-_]psk", "PSK=", "psk=", "[Mm]dp[=:]", "[Mm]dp [=:]"),
        *(r"lapta[z\xc5]", "arole[: ]", "arool", "eslo"),
    ),
    (
        *(
            "арол",
            "密码",
            "密碼",
            "口令",
            "パスワード",
            "비밀번호",
            "비번",
            "الرقم السري",
            "암호는",
        ),
        *("كلمة ", "סיסמ", "पासवर्ड", "รหัสผ่าน", "ωδικό"),
    ),
)
# Names about passwords, and sentences: passwordHash, password_file, PasswordField, "passwordless".
_TAIL = re.compile(
    r"(?i)(?:[-_]?(?:\d{1,3}|prod|dev|test|stag\w*|db|root|admin|user|app|old|new|current|"
    r"plain|main|master|primary|read|write|api|web|site|smtp|mail|wifi|again|confirm\w*|repeat)|"
    r"(?:s|es|n|m|t|en|et|a|o|e|и|я|ю|ем|у|ь|ьом|ו|ה|em|im|ом|óm|unk|ot|ni|in|yn|lar|ler|z|im|k|ι|"
    r"ος|ός|ς|d|ó|avam|ni|si|n[ıi]z|imiz|iniz|ınız|i|y|á|är))?(?![A-Za-z0-9À-ɏ\u0370-\u06ff]|"
    r"[-_][A-Za-z0-9])"
)
_DECORATION = r"(?:[*_`\"'”»]{0,3}(?:</?[a-z][a-z0-9]{0,7}>){0,3})"
_OPEN = re.compile(r"(?:<[a-z][a-z0-9]{0,7}>|\*\*|_{1,2}(?=\S{1,60}_(?!\w))|[*`]){0,3}")
_QUOTE = "\\\\?[\"'`]|[“”„«»‹「『‘’]"
_COPULA = (
    r"is|was|=|are|be|remains|became|ist|lautet|war|bleibt|est|était|sera|es|era|será|è|é|foi|to|"
    r"jest|brzmi|är|er|on|je|bude|este|là|adalah|คือ|είναι|היא|הוא|هي|هو|это|—|–|-|olan|reads|"
    r"equals"
)
_ASSIGN = re.compile(
    rf"(?:[\"'`]?[\])])?{_DECORATION}\s{{0,3}}(?:(?<![:=!])(?::=|=>|->|[=:：＝]))(?![=~>])(?:\*\*|"
    rf"__|</[a-z]{{1,6}}>)?[ \t]{{0,4}}"
)
_TELL = re.compile(
    rf"(?P<filler> ?\([^()\n]{{1,40}}\)| [^\n=:;.!?<>\"]{{1,44}}?)??{_DECORATION}"
    rf"(?P<sign>(?:(?<=[^ ])[:：]|[ \u00a0]:|->|→)\s?| (?:{_COPULA})(?: also| now| still|"
    rf" just| maintenant| jetzt| nun| ahora| agora| ora| теперь| teraz)? ?:? |"
    r" ?(?:は|是|为|為|が|叫)：?[、 ]?|(?:는|은|이|가):? |है )"
)
_NEXT = re.compile(
    r"[\"']?[ \t]{0,8}[|,;\t][ \t]{0,8}|\([ \t]?(?=[\"'])|[\"']? +value=(?=[\"'])|[\"']?>|"
    r"(?:</?[a-z][a-z0-9]{0,7}>){1,4}|[ \t]{1,4}"
)
_BARE = re.compile(r"[^\s]{1,128}")
_QUOTED = re.compile(
    rf"(?:@|[brufLN]{{1,2}}(?=[\"']))?(?P<open>{_QUOTE})(?:(?<=«)[ \u00a0\u202f])?"
    r"(?P<value>(?:(?!(?P=open)|[\n”“»›」』’])(?:\\.|[^\n\\])){1,128}?)"
    r"(?:(?P=open)|[ \u00a0\u202f]?»|[”“›」』’])"
)
# Chinese and Japanese text goes on without blanks.
_WIDE = re.compile(
    r"[、。，；！？）」』】।॥]|(?<=[\x21-\x7e])[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
)
_END = re.compile(
    r"</|&(?:amp;|[A-Za-z_]+=)|\\[nr\"']|[,;|][A-Za-z_ ]{1,20}[=:]|[|`]|[,;)\]}>\"'”»]+$|"
    r"\*\*(?=\W*$)"
)


def _check_password(text: str, start: int, end: int) -> Iterator[Span]:
    word = text[start:end].rstrip("=: \"'`*").removesuffix(" is").removesuffix(" by")
    end = start + len(word)
    start += word[-2:].lower() == "pw" and len(word) == 3
    tail = _TAIL.match(text, end, end + 24)
    if tail and not _is_placeholder_name(text, start, end):
        values = list(_value_after(text, start, tail.end()))
        yield from values or _named_after(text, start)


_AS = re.compile(
    r"(?:^|[\s\"'`(])([^\s\"'`]{5,40})[\"'`]? as (?:the |my |your |a |our )?(?:\w{1,12} )?\Z"
)


def _named_after(text: str, start: int) -> Iterator[Span]:
    """Yield a value that comes first: "use ... as the password"."""
    first = max(0, start - 70)
    if text.find(" as ", first, start) < 0:  # most texts, and the regex tries every place
        return
    match = _AS.search(text[first:start])
    if (
        match
        and is_strong(match[1])
        and re.search(r"\d", match[1])
        and not is_placeholder(match[1])
    ):
        yield first + match.start(1), first + match.end(1)


def _is_placeholder_name(text: str, start: int, end: int) -> bool:
    """Check that a word is a placeholder of ours: `<PASSWORD>`, `[PASSWORD]`."""
    edges = text[max(0, start - 1) : start] + text[end : end + 1]
    return edges in ("[]", "{}") or (edges == "<>" and text[start:end].isupper())


def _value_after(text: str, start: int, place: int) -> Iterator[Span]:
    """Yield the value for the name that begins at `start` and ends at `place`, if there is one."""
    if assign := _ASSIGN.match(text, place, place + 24):
        yield from _assigned(text, start, assign.end())
    elif following := _NEXT.match(text, place, place + 12):
        told = _TELL.match(text, place, place + 80)
        values = list(_told(text, told.end(), bool(told["filler"]))) if told else []
        yield from values or _adjacent(text, start, following)
    elif told := _TELL.match(text, place, place + 80):
        yield from _told(text, told.end(), bool(told["filler"]))


_CONFIG_BEFORE = re.compile(r"(?:^\s*(?:- )?|[;&?]|--?|\bexport |\bENV |\bset |-e )[\w.-]{0,40}$")
_CODE = re.compile(
    r"[A-Za-z_]{3}[A-Za-z_.]*(?:[(\[]|::|->).*|[A-Za-z_]+(?:\.[A-Za-z_]+)+|"
    r"[A-Za-z_]\w*[.,;]*[)\];]|"
    r"[A-Za-z_]\w*(?:\.\w+)+[(\[].*|[a-z_]\w*\([\w, ]*\)?[.\w]*\(?|"
    r".*\(\)|(?:/|\./|~/|[A-Za-z]:\\).*|https?://.*|[A-Za-z_]+\??[;,)]?|[A-Za-z_]+\w*[({]|[=!<>|].*|"
    r"\+\w*"
)


def _assigned(text: str, start: int, place: int) -> Iterator[Span]:
    """Yield a value after "=" or ":", where code, configuration and prose look alike."""
    opened = _OPEN.match(text, place, place + 24)
    place = opened.end() if opened else place
    if quoted := _QUOTED.match(text, place, place + 140):
        if _is_quoted_secret(quoted["value"]):
            yield quoted.span("value")
        return
    first, last = _bare(text, place)
    value = text[first:last]
    if not value or is_placeholder(value):
        return
    is_tight = text[place - 1 : place] == "=" and text[place - 2 : place - 1] not in (" ", ":")
    is_line = (
        text[last : last + 1] in ("", "\n", "\r", ";", "&", "#") or text[last : last + 2] == " #"
    )
    is_name = text[start : start + 4].isupper() or text[start - 1 : start] in (";", "-", "&")
    is_open = is_tight and is_name and not re.search(r"[(){}\[\]]|^[\"'/]", value)
    if is_open and _is_config(text, start):
        if len(value) >= 4:
            yield first, last
    elif re.fullmatch(r"\d{4,32}", value):
        if text[last : last + 1] in ("", "\n", ",", ";", ".", ")", '"', "'", "&", "|", "<"):
            yield first, last
    elif (is_strong(value) and not _CODE.fullmatch(value)) or (
        is_line and _is_plain(value, text, start) and _is_config(text, start)
    ):
        yield first, last


def _is_config(text: str, start: int) -> bool:
    line = text.rfind("\n", max(0, start - 60), start) + 1
    return bool(_CONFIG_BEFORE.search(text[max(line, start - 60) : start]))


_PROSE_VALUE = re.compile(
    r"(?i)str(?:ing)?|text|varchar|char|int(?:eger)?|bool(?:ean)?|any|object|bytes|hidden|field|"
    r"false|"
    r"self|this|null\w*|input|args?|data|values?|config|env|get\w*|read\w*|prompt|ask|plain|"
    r"encrypted|"
    r"md5|crypt|enabled|disabled|allowed|denied|forgot\w*|incorrect|wrong|invalid|weak|strong|never"
)


_LOGIN_BEFORE = re.compile(
    r"(?i)\b(?:user\w*|login|host|hostname|port|database|db\w*|name)[\"']?\s?[:=]\s?[\w.\"'-]+\s*\Z"
)


def _is_plain(value: str, text: str, start: int) -> bool:
    """Check that a line `password: value` of configuration, below the user's, sets a word."""
    line = text.rfind("\n", max(0, start - 60), start) + 1
    return (
        bool(re.fullmatch(r"[a-z]{6,32}", value))
        and not _PROSE_VALUE.fullmatch(value)
        and bool(_LOGIN_BEFORE.search(text[max(0, line - 60) : line]))
    )


def _is_quoted_secret(value: str) -> bool:
    """Check a value in quotes after a sign: any but placeholders, sentences, paths and names."""
    words = value.split()
    is_sentence = len(words) > 1 and (
        len(words) > 8 or re.search(r"[.:?!]$|\b(?:the|your|a)\b", value)
    )
    is_label = is_placeholder(value) or value.endswith(":") or value.strip(" +,") != value
    is_name = re.fullmatch(
        r"(?i).*(?:passw|[/\\]).*|[a-z]+pwd?|(?-i:[a-z]+(?:[A-Z][a-z]+){2,})", value
    ) and not is_strong(value)
    return len(value) >= 4 and not (is_sentence or is_label or is_name)


def _told(text: str, place: int, has_filler: bool) -> Iterator[Span]:
    """Yield a value that prose tells: "my password is ...", "das Passwort lautet ..."."""
    opened = _OPEN.match(text, place, place + 24)
    place = opened.end() if opened else place
    if quoted := _QUOTED.match(text, place, place + 140):
        value = quoted["value"]
        if _is_quoted_secret(value) and (is_strong(value) or not has_filler) and len(value) > 4:
            yield quoted.span("value")
        return
    first, last = _bare(text, place)
    value, after = text[first:last], text[last : last + 12]
    if value.isalpha():  # most are, and no word of letters is strong
        return
    is_count = re.match(
        r"\s*(?:or |to |[-–] )?(?:\d|char|byte|digit|bit|letter|Zeichen|carac|символ)", after
    )
    is_number = re.fullmatch(r"\d{4,32}", value) and not is_count
    if (is_number or is_strong(value)) and not is_placeholder(value) and not _CODE.fullmatch(value):
        yield first, last


_LOGIN = re.compile(r"\bmachine\s{1,8}\S*[.\d]\S*\s{1,8}login\s{1,8}\S+\s{1,8}\Z")  # in .netrc


def _adjacent(text: str, start: int, following: re.Match[str]) -> Iterator[Span]:
    """Yield a value right after the word: options, netrc, SQL, tags, tables, calls."""
    place = following.end()
    if quoted := _QUOTED.match(text, place, place + 140):
        value = quoted["value"]
        is_option = bool(re.search(r"(?:--?|/)[\w-]{0,20}$", text[max(0, start - 24) : start]))
        is_set = is_option or following[0][-1] in "=>"
        is_set = is_set or (following[0].isspace() and text[start : start + 8].isupper())
        if _is_quoted_secret(value) and (is_set or (is_strong(value) and " " not in value)):
            yield quoted.span("value")
        return
    first, last = _bare(text, place)
    value = text[first:last]
    is_login = _LOGIN.search(text, max(0, start - 100), start)
    # Most are of letters, and no such word is strong.
    if value.isalpha() and following[0][-1:] != ">" and not is_login:
        return
    is_tag = following[0][-1:] == ">" and text[last : last + 2] == "</"
    is_known = is_tag and re.fullmatch(r"[^\s(){}]{4,}", value)
    if is_placeholder(value) or (_CODE.fullmatch(value) and not (is_known or is_login)):
        return
    is_cell = following[0].strip() in ("|", "\t") or not following[0].isspace()
    is_odd = re.search(r"[(){}\[\]=,]|^-|^\d+$|^\W", value) or (
        not is_cell and re.fullmatch(r"[^\d-]*|\D{1,15}", value)
    )
    is_sure = is_strong(value) and not is_odd
    if is_known or is_sure or (is_login and len(value) > 3):
        yield first, last


def _bare(text: str, place: int) -> Span:
    """Return the place of a value without quotes; what ends a sentence or a field is no part."""
    match = _BARE.match(text, place)
    if not match:
        return place, place
    value = match[0]
    if not value.isascii() and (wide := _WIDE.search(value)):
        value = value[: wide.start()]
    if (cut := _END.search(value)) and cut.start() >= 3:
        value = value[: cut.start()]
    return place, place + len(value.rstrip(".,;:)]}>\"'”»"))


def _check_option(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the secret of the short option of a command that takes one."""
    match = _OPTION.match(text, start, end)
    secret = match and next(group for group in (1, 2, 3) if match[group])
    if match and secret and not is_placeholder(match[secret]) and len(match[secret]) >= 4:
        yield match.span(secret)


_OPTION = re.compile(
    r"(?:mysql|mariadb)[a-z]{0,8} [^\n]{0,80}?(?<= )-p[\"']?([^\s\"']{4,100})|"
    r"(?:sshpass|docker login|helm registry login|redis-cli|ldap\w{3,9}|smbclient|7z|unzip|zip)"
    r"[^\n]{0,80}? -(?:p|P|a|w) ?[\"']?([^\s\"']{4,100})|"
    r"(?:curl|wget|http) [^\n]{0,80}?(?:-u|--user|-a) [\"']?[\w.@+-]{1,64}:([^\s\"'@]{4,100})"
)
_COMMANDS = (
    r"(?:mysql|mariadb|sshpass|docker login|redis-cli|curl|wget|ldap[a-z]{1,20})"
    r"[^\n]* -(?:-user|[puaw])"
)

_PGPASS = r"[A-Za-z0-9.*_-]{1,40}:(?:5432|6432|\*):[A-Za-z0-9*_-]{1,30}:[^\s:]{1,40}:[^\s:]{4,64}"


def _check_pgpass(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the last field of a line of PostgreSQL's password file."""
    first = text.rfind(":", start, end) + 1
    is_line = text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n", "\r")
    if is_line and not is_placeholder(text[first:end]):
        yield first, end


_SIGHT = 300  # characters: 24 of the name, 80 and 24 up to the value, 140 of it, 12 after it
_PW = r"[Pp][Ww](?:[\"'`*]{0,2} ?[=:]| is )"

SCANS = (
    Scan(
        "password",
        rf"(?:^|[^A-Za-z0-9]){_PW}",
        _check_password,
        ("[Pp][Ww][=:].", "[Pp][Ww][\"'`* ][\"'`* =:i]"),
        sight=_SIGHT,
    ),
    *(
        Scan("password", names, _check_password, clues, sight=_SIGHT)
        for names, clues in zip(_NAMES, _CLUES, strict=True)
    ),
    Scan(
        "password",
        _COMMANDS + "[^\n]*",
        _check_option,
        ("mysql", "mariadb", "sshpass", "docker login", "redis-cli", "curl", "wget", "ldap[a-z]"),
        r"[^\n]",
        FAR,
    ),
    Scan(
        "password",
        _PGPASS,
        _check_pgpass,
        (":5432:", ":6432:", r":\*:"),
        r"[^\s]",
        256,
    ),
)
