"""Tell a secret from what takes its place: placeholders, masks, templates, code, plain words.

A value in documentation that names what belongs there (`user:password@host`, `<password>`, `***`)
is no secret; a concrete value is, also in an example.
"""

import re

# Words in small letters; "~" stands for a blank, hyphen or underscore that may be there.
_ROLES = (
    "my your the a an some any new old this that user users db database admin root example sample "
    "test dummy fake default actual real super very secure strong secret strict long random plain "
    "good correct wrong invalid right raw insert enter put type replace with hashed hash encoded "
    "encrypted app api auth access client service server login account personal mon mein mi su tu"
)
_THINGS = (
    "pass passwort passwords passworts password passwd passwds passord passphrase passcode "
    "pwd pswd psw pw pin secret token tokens key keys value string text credential credentials "
    "user user~name user~id name login id me here kennwort mot~de~passe mdp contrasena clave senha "
    "haslo heslo wachtwoord adgangskode salasana sifre parolai parolaiz parolani parolaniz parola "
    "lozinka x-oauth-basic x-access-token oauth2 something anything whatever password(s)"
)
# Without regard to case, ı is also i: "parolaniz" is above.
_WIDE_THINGS = (
    "contraseña hasło lösenord şifre parolaı parolaız parolanı parolanız jelszó парол[ьяю] "
    "密码 密碼 口令 パスワード 비밀번호 암호 رمز सीक्रेट पासवर्ड"
)
_AFTER_THINGS = "goes to for"
_WORDS = (
    "change~me change~it change~this change~now replace~me replace~this replace~it todo fixme tbd "
    "foo bar baz qux none null nil undefined nan true false yes no on off redacted hidden masked "
    "removed n/a empty blank unset unknown optional required guest anonymous example sample test "
    "default"
)
_TECHNICAL_NAMES = (
    "sha md utf base aes rsa iso rfc oauth pbkdf bcrypt argon scrypt ascii unicode latin ntlm win "
    "x v version http ipv python php java uint int u i char varchar str string text arg param val "
    "var tmp temp foo bar pass password passwd passphrase passwort pwd pw p s key token user data "
    "buf c d n step level type field input line part option page chapter figure table appendix "
    "section item"
)
_UNITS = "st nd rd th x kb mb bit byte bytes char chars"


def _pattern_of(words: str) -> str:
    """Make the regex of one of some words."""
    return "|".join(re.escape(word).replace("\\~", "[-_ ]?") for word in words.split())


_ROLE = _pattern_of(_ROLES).replace("mon|", "mon(?!key)|")
_THING = _pattern_of(_THINGS) + "|" + "|".join(_WIDE_THINGS.split())
_PLACEHOLDER = re.compile(
    rf"(?i)(?:(?:{_ROLE})[-_. ]?){{0,6}}(?:{_THING})"
    rf"(?:[-_. ]?(?:{_THING}|{_pattern_of(_AFTER_THINGS)}|\w)){{0,3}}|"
    rf"{_pattern_of(_WORDS)}|foo(?:bar)+|"
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


_TECHNICAL = re.compile(
    rf"(?i)(?:{_pattern_of(_TECHNICAL_NAMES)})[-_]?\d{{1,4}}(?:[-_/.]\w{{1,12}})?|"
    rf"\d+(?:{_pattern_of(_UNITS)})|"
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
