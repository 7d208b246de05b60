"""Tell a secret from what takes its place: placeholders, masks, templates, code, plain words.

A value in documentation that names what belongs there (`user:password@host`, `<password>`, `***`)
is no secret; a concrete value is, also in an example.
"""

import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

_ROLE = (
    r"my|your|the|an?|some|any|new|old|this|that|users?|db|database|admin|root|example|sample|test|"
    r"dummy|fake|default|actual|real|super|very|secure|strong|secret|strict|long|random|plain|good|"
    r"correct|wrong|invalid|right|raw|insert|enter|put|type|replace|with|hashed|hash|encoded|"
    r"encrypted|app|api|auth|access|client|service|server|login|account|personal|mon(?!key)|mein|mi|su|"
    r"tu"
)
_THING = (
    r"pass|passw(?:or[dt]|d)s?|passord|passphrase|passcode|pwd|pswd|psw|pw|pin|secret|tokens?|"
    r"keys?|"
    r"value|string|text|credentials?|user(?:[-_ ]?(?:name|id))?|name|login|id|me|here|"
    r"kennwort|mot[-_ ]?de[-_ ]?passe|mdp|contrase(?:ñ|n)a|clave|senha|has[lł]o|heslo|wachtwoord|"
    r"lösenord|adgangskode|salasana|şifre|sifre|parolan?ız?|parola|jelszó|lozinka|парол[ьяю]|密码|密碼|"
    r"口令|パスワード|비밀번호|암호|رمز|सीक्रेट|पासवर्ड|सीक्रेट|"
    r"x-oauth-basic|x-access-token|oauth2|something|anything|whatever|password\(s\)"
)
# In small letters: each thing has one, or a letter that is not ASCII.
_STARTS_OF_THINGS = (
    "pas psw pwd pw pin sec tok key val str tex cre use nam log id me her ken mot mdp con cla sen "
    "has hes wac adg sal sif par jel loz oau som any wha"
)
# The first letters of the placeholders that are one word, beside those of things and masks.
_STARTS_OF_WORDS = (
    "cha rep tod fix tbd foo bar baz qux non nul nil und nan tru fal yes no on off red hid mas rem "
    "emp bla uns unk opt req gue ano exa sam tes def"
)
# Of technical names, letters before or after digits.
_STARTS_OF_NAMES = (
    "sha md utf bas aes rsa iso rfc oau pbk bcr arg scr asc uni lat ntl win x v ver htt ipv pyt "
    "php jav uin int u i cha var str tex par val tmp tem foo bar pas pwd pw p s key tok use dat "
    "buf c d n ste lev typ fie inp lin opt pag fig tab app sec ite st nd rd th kb mb bit byt"
)
_PLACEHOLDER = re.compile(
    rf"(?i)(?:(?:{_ROLE})[-_. ]?){{0,6}}(?:{_THING})(?:[-_. ]?(?:{_THING}|goes|to|for|\w)){{0,3}}|"
    r"change[-_ ]?(?:me|it|this|now)|replace[-_ ]?(?:me|this|it)|todo|fixme|tbd|foo|bar|baz|qux|"
    r"foo(?:bar)+|none|null|nil|undefined|nan|true|false|yes|no|on|off|redacted|hidden|masked|"
    r"removed|"
    r"n/a|empty|blank|unset|unknown|optional|required|guest|anonymous|example|sample|test|default|"
    # Masks, ellipses, and signs that name nothing.
    r"(?:[*•●·xXyY#?_.…:-]|\\\*)+|"
    # Templates: $VAR, ${VAR}, {var}, <var>, [var], %VAR%, %s, %(var)s, :var, @var, ALL_CAPS_NAME.
    r"\$[A-Za-z_]+|\$?\{.*|\$\(.*|<.*|\[.*|\(.*|%\w{0,30}%|%[sdrq]|%\(.*|%\{.*|#\{.*|"
    r"[:@&][A-Za-z_]+|"
    r"\\.*|(?-i:[A-Z]+(?:_[A-Z]+)+)"
)
_TEMPLATE = re.compile(
    r"\$\{|\{\{|\$\(|#\{|<%|%>|%\(\w|\$[A-Z_]{4,}|\]\]|\{[a-z_]+\}|\{%|<[A-Za-z_ ]+>"
)


def is_placeholder(value: str) -> bool:
    """Check that a value takes a secret's place instead of being one."""
    return bool(_PLACEHOLDER.fullmatch(value) or _TEMPLATE.search(value))


@cache
def thing_starts() -> NDArray[np.uint8]:
    """Make the kernel's table of letters that words begin with: uint8 [27**3].

    An index is three letters as digits to base 27; 0 stands for any byte that is no letter.
    """
    from assets.filtered.kernels.plain.plain_values import TECHNICAL, THING, WORD

    table = np.zeros((27, 27, 27), np.uint8)
    for start in _STARTS_OF_THINGS.split():
        first, second, *third = (ord(letter) - ord("a") + 1 for letter in start)
        table[first, second, third or slice(None)] |= THING
    for starts, flag in ((_STARTS_OF_NAMES, TECHNICAL), (_STARTS_OF_WORDS, WORD)):
        for start in starts.split():
            numbers = [ord(letter) - ord("a") + 1 for letter in start]
            table[*numbers, *[0] * (3 - len(numbers))] |= flag
    return table.ravel()


_TECHNICAL = re.compile(
    r"(?i)(?:sha|md|utf|base|aes|rsa|iso|rfc|oauth|pbkdf|bcrypt|argon|scrypt|ascii|unicode|latin|"
    r"ntlm|"
    r"win|x|v|version|http|ipv|python|php|java|uint|int|u|i|char|varchar|str|string|text|arg|param|"
    r"val|var|tmp|temp|foo|bar|pass(?:word|wd|phrase|wort)?|pwd|pw|p|s|key|token|user|data|buf|c|"
    r"d|n|"
    r"step|level|type|field|input|line|part|option|page|chapter|figure|table|appendix|section|item)"
    r"[-_]?\d{1,4}(?:[-_/.]\w{1,12})?|\d+(?:st|nd|rd|th|x|kb|mb|bit|bytes?|chars?)|"
    r"\d+[-–]\w+|\w+@[0-9a-f]{7,}|(?:your|my)[@_.-]\w+|\w+-\d{1,2}|[\d.,:/–-]*"
)
_MARKS = re.compile(r"[!@#$%^&*+=?~|]")


def is_strong(value: str) -> bool:
    """Check that a bare value is no word or name: letters with digits or marks, or four words."""
    if not 5 <= len(value) <= 128 or _TECHNICAL.fullmatch(value):
        return False
    if any(map(str.isalpha, value)) and (
        any(map(str.isdigit, value))
        or _MARKS.search(value, 1, len(value) - 1)
        or len(_MARKS.findall(value)) > 1
    ):
        return True
    return len(re.findall(r"[^\W_]{2,}", value)) >= 4 and not re.search(r"[/\\.,:]", value)
