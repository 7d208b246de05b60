"""Personal data is found where it is and nowhere else, and what is around it is never touched."""

import tracemalloc

from many_examples import many_examples
from prelude import Iterator, ValidationError, example, given, np, pl, pytest, settings, st
from tables import cases

from assets.filtered.pii.candidates import (
    REJECTED,
    candidates,
    candidates_in,
    check_candidates,
    windows_of,
)
from assets.filtered.pii.find_pii import SCANS, find_once, find_pii
from assets.filtered.pii.identity_numbers import _IBAN_LENGTHS, passes_luhn, passes_mod97
from assets.filtered.pii.scan import Scan, Span
from assets.text.buffers import text_buffers
from resources.settings.filtering.filter_steps import (
    DEFAULT_KINDS,
    KINDS,
    MAX_VALUES,
    PLACEHOLDERS,
    PiiConfig,
    PiiKind,
)

HEX32 = "9f86d081884c7d659a2feaa0c55ad015"
RANDOM40 = "kX9vQ2mZ" + "7rT4wLp1" + "Yb6NsHd3" + "FgJ8cVa5" + "EuR0oKiW"
PEM_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
BEGIN, END = (f"-----{word} RSA PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", "a" * 43))

FOUND: dict[PiiKind, list[str]] = {
    "email": [
        "mail ⟦jane.doe@example.com⟧ now",
        "⟦jane+news@mail.example.co.uk⟧, bye",
        "邮箱⟦zhang_wei@qq.com⟧。",
        "ends ⟦o'brien-x@sub.domain.museum⟧.",
        "<a href='mailto:⟦info@müller.de⟧'>",
        "'⟦a@b.io⟧'",
        "联系⟦a@b.io⟧或",
        f"⟦{'a' * 64}@b.io⟧",
        "posted to ⟦list@lists.debian.org⟧-subscribers",
        "Helsinki ⟦kl@almamedia.fi⟧, ⟦USER@HOST.COM⟧",
        "all of ⟦a!#$%&'*+/=?^_`{|}~-z@b.io⟧ is legal",
        "|⟦a@b.io⟧| `⟦a@b.io⟧` **⟦a@b.io⟧** {⟦a@b.io⟧} ?to=⟦a@b.io⟧&x, MAIL=⟦a@b.io⟧",
        "пишите на ⟦дмитрий@почта.рф⟧, ⟦josé@café.fr⟧, ⟦संपर्क@उदाहरण.भारत⟧",
        "邮箱 ⟦用户@例子.中国⟧或者, ⟦a@xn--e1afmkfd.xn--p1ai⟧.",
        '⟦"jane doe"@example.com⟧ and ⟦jane@[93.184.216.34]⟧',
        "⟦jane [at] example [dot] com⟧, ⟦jane(at)b.de⟧, <⟦jane dot doe at b dot org⟧>",
        "archives/list/⟦python-dev@python.org⟧/thread",
    ],
    "ip": [
        "from ⟦93.184.216.34⟧ port",
        "http://⟦93.184.216.34⟧:8080/x",
        "ping ⟦8.8.8.8⟧.",
        "at ⟦50.1.2.3⟧, at ⟦1.2.50.3⟧,",
        "the host ⟦1.2.3.4⟧ answered",
        "⟦93.184.216.34⟧-⟦93.184.216.40⟧",
        "ip=⟦203.80.1.9⟧,",
        "联系⟦203.80.1.9⟧或",
        "dns ⟦2606:2800:220:1:248:1893:25c8:1946⟧ ok",
        "[⟦2a00:1450:4001:81b::200e⟧]:443",
    ],
    "phone": [
        "call ⟦(555) 123-4567⟧ now",
        "call ⟦555-123-4567⟧",
        "⟦1-800-273-8255⟧",
        "⟦+1 (415) 254-2601⟧.",
        "⟦212.555.0147 ext. 12⟧,",
        "office ⟦+49 (0)30 / 420248-488⟧",
        "⟦+4915208649244⟧",
        "⟦+491234567⟧, ⟦+49 123456789012 3⟧",
        "Tel: ⟦1234567⟧, Tel: ⟦12 3456⟧",
        "⟦+49 30.24344121⟧ in Berlin",
        "⟦+44 20 7946 0958⟧ or ⟦+33 1 42 68 53 00⟧",
        "Telefon: ⟦030 24344 121⟧",
        "Tél. ⟦01 42 68 53 00⟧",
        "faks: ⟦(+48) 22 525 80 40⟧",
        "Phone: ⟦5551234567⟧",
        "phone number: ⟦07700 964035⟧",
        "联系⟦+55 11 94217-6400⟧或⟦212-555-0147⟧或",
        "电话：⟦010-6552-9988⟧",
        "ring ⟦020 7946 0958⟧ (24h), ⟦01632 960 001⟧, or ⟦07700 900123⟧!",
        "Zentrale ⟦030 24344 121⟧, ⟦0171 123 45 67⟧, ⟦(089) 1234 567⟧",
        "| Jane | ⟦06 12 34 87 65⟧ | Lyon |",
        "name;phone\nJane;⟦612 34 56 71⟧;x",
        "Puh. ⟦050 415 1234⟧, kom. ⟦601 234 567⟧, móvil ⟦612 345 671⟧",
        "⟦8 (495) 939 10 00⟧, ⟦98450 12345⟧, ⟦139 1234 8765⟧, ⟦(11) 98765 4321⟧",
        "mob ⟦913 45 678⟧\nRing ⟦35 32 26 21⟧\n手机 ⟦6516 6626⟧",
        "> ⟦415 555 2671⟧\n* ⟦0412 998 877⟧",
    ],
    "ssn": [
        "SSN ⟦123-45-6789⟧.",
        "id:⟦001-01-0001⟧",
        "Social Security number ⟦123 45 6789⟧",
        "ssn=⟦123456789⟧",
        "联系⟦123-45-6789⟧或",
    ],
    "credit_card": [
        "paid ⟦4111 1111 1111 1111⟧ 12/27",
        "⟦5500-0055-5555-5559⟧",
        "⟦378282246310005⟧;",
        "⟦3782 822463 10005⟧",
        "visa ⟦4012888888881881⟧,",
        "⟦6011111111111117⟧",
        "⟦4222222222222⟧, ⟦4012888888881881235⟧",
        "⟦3056 930902 5904⟧",
        "联系⟦4111111111111111⟧或",
    ],
    "iban": [
        "IBAN: ⟦DE89 3704 0044 0532 0130 00⟧ BIC COBADEFF",
        "⟦GB29NWBK60161331926819⟧.",
        "联系⟦GB29NWBK60161331926819⟧或",
        "⟦FR14 2004 1010 0505 0001 3M02 606⟧",
        "⟦NO93 8601 1117 947⟧ and ⟦BE68 5390 0754 7034⟧",
    ],
    "url_secret": [
        "postgres://app:⟦s3cr3tz⟧@db:5432/x",
        "redis://:⟦p%40ss9⟧@cache:6379 mongodb+srv://u:⟦sunshine⟧@c0.mongodb.net/t",
        "https://⟦" + "ghp_" + RANDOM40[:36] + "⟧@github.com/o/r.git",
        "git+https://oauth2:⟦" + "glpat-" + RANDOM40[:20] + "⟧@gitlab.com/g/p",
        "https://⟦" + HEX32 + "⟧:x-oauth-basic@h.io, ftp://u:⟦kätzchen⟧@h.io",
        "mysql://u:⟦p@ssw1rd⟧@h/db and user:⟦s3cr3tz⟧@tcp(127.0.0.1:3306)/db",
    ],
    "password": [
        "my password is ⟦hunter2⟧, do not tell",
        'The password for the wifi is "⟦correct horse 7⟧".',
        "Das Passwort lautet ⟦Blaukraut77!⟧ und",
        "mot de passe : ⟦chocolat84⟧, le mot de passe est « ⟦chocolat84⟧ »",
        "mi contraseña es ⟦verano23⟧. пароль: ⟦zima2022⟧",
        "密码是⟦panda2020⟧，请。パスワードは「⟦sakura04⟧」です。",
        "비밀번호는 ⟦seoul1988⟧ 입니다, हमारा पासवर्ड ⟦delhi1947⟧ है",
        "كلمة المرور: ⟦nile7788⟧",
        "use ⟦Mango88tree⟧ as the password",
        "DB_PASSWORD=⟦sunshine⟧\nexport PGPASSWORD='⟦moon light⟧'",
        "user: jane\npassword: ⟦moonshine⟧\nport: 1",
        '{"user": "jane", "password": "⟦sunshine⟧"}',
        "self.password = '⟦sunshine⟧'",
        'config["password"] = "⟦sunshine⟧"',
        "Server=x;Password=⟦sunshine⟧;Encrypt=true",
        "https://h.io/login?user=jane&password=⟦jdbc77⟧&next=1",
        "--password ⟦cliPass321⟧ --password=⟦sunshine⟧",
        "mysql -u root -p⟦s3same⟧ db\ncurl -u jane:⟦s3same⟧ https://h.io",
        "CREATE USER j WITH PASSWORD '⟦sunshine⟧';",
        '<password>⟦sunshine⟧</password> <add key="Password" value="⟦sunshine⟧"/>',
        "| Password | ⟦granite2022⟧ |\n**Password:** `⟦granite2022⟧`",
        "PIN and pw: ⟦granite2022⟧",
        "pass phrase: ⟦monkey013⟧\npassword: ⟦Marble@6335⟧\npassword: ⟦x9Rov@**29⟧ next",
        "DB_PASSWORD=⟦_WSg-f7vLj⟧",
    ],
    "api_key": [
        f"key ⟦{'AKIA' + 'X' * 16}⟧",
        f"⟦{'ghp_' + RANDOM40[:36]}⟧",
        f"token=⟦{'glpat-' + RANDOM40[:20]}⟧",
        f"⟦{'xoxb-' + '1234567890-' + RANDOM40[:24]}⟧",
        f"⟦{'AIza' + RANDOM40[:35]}⟧",
        f"⟦{'sk_live_' + RANDOM40[:24]}⟧",
        f"⟦{'hvs.' + RANDOM40[:24]}⟧ ⟦{'shpat_' + HEX32}⟧ ⟦{'dop_v1_' + HEX32 * 2}⟧",
        f"⟦{'1234567890:AA' + RANDOM40[:33]}⟧ ⟦{'gsk_' + RANDOM40}⟧ ⟦{'xapp-' + RANDOM40}⟧",
        f"⟦{'sk-proj-' + RANDOM40}⟧ ⟦{'sk-ant-' + RANDOM40}⟧ ⟦{'sk-' + RANDOM40}⟧",
        f"⟦{'hf_' + 'AbCdEfGhIj' * 3}⟧ ⟦{'npm_' + RANDOM40[:36]}⟧",
        f"⟦{'pypi-' + RANDOM40 * 2}⟧",
        f"⟦{'SG.' + RANDOM40[:22] + '.' + RANDOM40 + 'abc'}⟧",
        f"twilio sid ⟦{'SK' + HEX32}⟧",
        f"Bearer ⟦{JWT}⟧",
        f"AccountKey=⟦{RANDOM40 * 2 + 'abcdef=='}⟧;",
        f"api_key = '⟦{RANDOM40}⟧'",
        f"api_key = '⟦{'g1h2j3k4m5n6p7' * 3}⟧'",  # log2(14) = 3.8 bits a character
        f"api_key = '⟦{'kXvQzmZJ' + 'qrTtwLpH' + 'YbUsHdGx' + 'FgJycVa47'}⟧'",
        f'"client_secret": "⟦{RANDOM40}⟧"',
    ],
    "private_key": [
        f"see\n⟦{BEGIN}\n{PEM_LINE}\nabcd==\n{END}⟧\nend",
        f"⟦{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{HEX32}\n\n{PEM_LINE}\n{END}⟧",
        f'key = "⟦{BEGIN}\\n{PEM_LINE}\\n{END}⟧\\n"',
        f"⟦{BEGIN}\n{PEM_LINE}\n{PEM_LINE}⟧\nand then the text goes on",
    ],
}
NOT_FOUND = [
    "@property\ndef f(self): pass",
    "user@host and foo@2x.png and lodash@4.17.21 and a@b",
    "git clone git@github.com:org/repo.git",
    "@media screen { } .a@b:hover",
    "y = x@w.transpose(0)",
    "https://user@github.com/x https://joe:pass@host.com/",
    "getty@tty1.service journald@NAME.conf",
    "127.0.0.1 10.0.0.8 192.168.1.1 169.254.0.1 192.0.2.7 0.0.0.0 255.255.255.0 224.0.0.1",
    "v1.2.3.4 version 91.10.44.124 pkg==91.10.44.124 pkg-91.10.44.124",
    "91.10.44.124.5 and 1.91.10.44.124 and 091.10.044.124 and Chrome/91.0.262.75",
    "11.8.3.1. Install it. Section 4.2.13.2",
    "::1 fe80::1 2001:db8::1 std::abc::de 12:34:56 00:1B:44:11:3A:B7 10/Oct/2000:13:55:36",
    "2000:13:55:36 face::book::cafe",
    "ISBN 978-0-306-40615-7 and 0-306-40615-2, ISSN 0378-5955",
    "2020-01-02 03:04:05, 1999-2004, 01/02/2003, 1234567890",
    "$1,234,567.89 and 3.14159265358979",
    "tel. 1999-2004 telescope 12345678",
    "+10 000 000 and x+12345678 and +25.123456",
    "+49123456, +49 123456789012 34",
    "Tel: 123456, Tel: 12 345",
    "host 50.1.2.3x, at 49.1.2.3, at 1.49.2.3",
    "a shift of +49.3024344121 and of +49.302434412",
    "911-555-1234 123-456-7890 5551234567 211 555 1234",
    "000-12-3456 666-12-3456 912-12-3456 123-00-4567 123-45-0000 1123-45-6789 123-45-67890",
    "123 45 6789",
    "4111 1111 1111 1112, 4111111111111112, 0.4111111111111111, 9784111111111111",
    "14111111111111111 4111111111111111x 1111 4111 1111 1111 1111 2222",
    "IMEI 490154203237518",
    "DE89 3704 0044 0532 0130 01 XX89370400440532013000 DE89370400440532013000A",
    f"sha {HEX32} key = '{HEX32}' 123e4567-e89b-42d3-a456-426614174000",
    "token = '123e4567-e89b-42d3-a456-426614174000'",
    "cache_key = 'user_profile_settings_cache_key_v2_2020'",
    f"api_key = '{'g1h2j3k4m5n6' * 3}'",  # log2(12) = 3.6 bits a character
    f"api_key = '{'kXvQzmZJ' + 'qrTtwLpH' + 'YbUsHdGx' + 'FgJycVaf7'}'",
    f"{'a' * 65}@b.io",
    "sk-learn-estimator-doc-link task-" + RANDOM40,
    f"x{'AKIA' + 'X' * 16} {'SK' + HEX32}",
    f"{BEGIN} ... {END}",
    "postgres://user:password@host/db https://u:${PASS}@h.io ftp://u:***@h.io http://[u]:<pw>@h",
    "amqp://guest:guest@localhost:5672 https://h.io:8080/@u ssh://git@h.io/x https://$TOKEN@h.io",
    "https://medium.com/@jane.doe/x http://h.io/?a=b&c=@d svn+ssh://jane@h.io/x",
    "The password is required. Your password is too short. password is case-sensitive",
    "password = getpass.getpass('Password: ')\npassword = os.environ['DB_PWD']\npassword=None,",
    "password: str, password: string; password?: string | null\nself.password = password",
    "password=self.password,\npassword = hashlib.md5(pw).hexdigest()\nif password == other1234:",
    "PASSWORD=${DB_PASSWORD}\nPASSWORD=<your password>\npassword: {{ vault_pw }}\npassword=****",
    "password: 'ViTbxGwCPw' and password: 'rootPwd' name passwords",
    "password: changeme\n'password': 'your-password'\n--password PASSWORD\n-p, --password TEXT",
    "password_hash = sha256(x)\nPASSWORD_MIN_LENGTH = 12345\npassword_file=/run/secrets/db7",
    'type="password" name="password" placeholder="Password"\nkeys = ["USER", "PASSWORD", "HOST"]',
    "Das Passwort muss 8 Zeichen lang sein. Passwort vergessen? 密码长度必须为8位 пароль не задан",
    "password must be at least 8 characters, password: 8-20 characters, SHA-256 password",
    "{{x}}@h.io ${user}@h.io {user}@h.io $USER@h.io %s@h.io we met at noon dot com",
    "look at example dot com",
    "601 234 567 EUR, $601 234 567, 601 234 567 inhabitants, 12 345 678 + 23 456 789",
    "10 20 30 40 50, 01 02 03 04 05, 0101 1010 0101, 20 20 30 30, 12 34 56 78 9a bc",
    "08 15 2021 12, 2021 03 04 05, 1999 2004, ISBN 978 3 16 148410 0, VAT DE 234 345 456",
    "100 200 300\n400 500 600\n700 800 900\n[22 33 44 51] 23 45 61 72 34",
    f"if line == '{BEGIN}':\n    read until {END}",
    "part 596-84-8933-A, 596-84-8933-A and SKU: 596-84-8933",
    "rgb 615 739 868, loss 460 225 4446 at step 9169, drawn: 25 12 03 11",
    f"{'AKIA' + 'IOSFODNN7' + 'EXAMPLE'} {'ghp_' + 'x' * 36} xoxb-your-own-token",
    "",
]

EXAMPLES = [text.replace("⟦", "").replace("⟧", "") for texts in FOUND.values() for text in texts]


def find(
    *texts: str, action: str = "redact", **options: object
) -> tuple[list[str], list[list[dict[str, object]]], pl.DataFrame]:
    config = PiiConfig.model_validate({"action": action, **options})
    changed, frame = find_pii(pl.Series("text", texts, dtype=pl.String), config)
    return changed.to_list(), frame["pii_spans"].to_list(), frame


def marked(text: str) -> str:
    for span in reversed(find(text, action="tag")[1][0]):
        start, end = int(str(span["start"])), int(str(span["end"]))
        text = f"{text[:start]}⟦{text[start:end]}⟧{text[end:]}"
    return text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_the_kind_is_found_at_its_place(kind: PiiKind, text: str) -> None:
    plain = text.replace("⟦", "").replace("⟧", "")

    assert marked(plain) == text
    assert {span["kind"] for span in find(plain)[1][0]} == {kind}


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_looks_alike_stays(text: str) -> None:
    assert marked(text) == text


@pytest.mark.parametrize("before", ["word\n", "7\n", "end.\n", "W1T 3QJ\n"])
@cases("""
    value
    93.184.216.34
    2606:2800:220:1:248:1893:25c8:1946
    (415) 555-2671
    "123-45-6789"
    4111 1111 1111 1111
    Tel. 020 7393 1500
    jane.doe@example.com
    GB29 NWBK 6016 1331 9268 19
    020 7946 0958
    redis://:s3cr3tz@db
    PASSWORD=s3cr3tz
""")
def test_a_value_at_the_start_of_a_line_is_found(before: str, value: str) -> None:
    assert find_pii(pl.Series([f"{before}{value}\n"]), PiiConfig())[1]["pii_total"].item() == 1


IBAN_LENGTHS = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27
DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22
IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19
MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31
SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""


def test_iban_lengths_are_those_of_the_registry() -> None:
    assert {f"{country}{length}" for country, length in _IBAN_LENGTHS.items()} == {
        *IBAN_LENGTHS.split()
    }


@pytest.mark.parametrize(("blanks", "is_near"), [(118, True), (119, True), (120, False)])
def test_a_rejected_candidate_is_near_within_the_reach_of_a_check(
    blanks: int, is_near: bool
) -> None:
    scans = [scan for scan in SCANS if scan.kind == "email"]
    before, after = "c@d.png" + " " * (blanks - 1), "a@b.io" + " " * (blanks + 1) + "c@d.png"

    unsure = find_once(pl.Series([before + "a@b.io", after]), scans)[1]

    assert unsure.tolist() == ([0, 1] if is_near else [])


def read_by_themselves(text: str, scan: Scan, places: list[list[int]]) -> list[list[int]]:
    """Return what the check of a scan says about candidates in the whole text."""
    data, found = text.encode(), []
    for row, first, last in places:
        start, end = len(data[:first].decode()), len(data[:last].decode())
        kind = KINDS.index(scan.kind)
        spans = [[row, *span, kind] for span in scan.check(text, start, end)]
        if not spans or scan.kind == "password":
            spans.append([row, start, end, REJECTED])
        found += spans
    return found


REPEATED_PARTS = st.sampled_from(
    [
        *(
            "password is ",
            "password=",
            "pwd: aB3!xyz9 ",
            "密码：a1b2c3 ",
            "senha: ",
            "é",
            "\n",
            " x",
        ),
        *(
            "1.2.3.4 ",
            "ip ",
            "8.8.8.8, ",
            '"a b"@example.org ',
            "joe@ex.png ",
            "a=b@c.org",
            "/",
            "1",
        ),
        *(
            "078-05-1121 ",
            "ssn ",
            "tel: ",
            "01 23 45 67 89 ",
            "22 12 34 56\n",
            "http://a:b12@c.de ",
        ),
        *("joe [at] example [dot] org ", "AKIA0000000000000001 ", "-----BEGIN PRIVATE KEY-----"),
    ]
)


@settings(max_examples=60)
@example(["password is "], 300, "1")
@example(["22 12 34 56\n", "é"], 120, "password")
@given(st.lists(REPEATED_PARTS, min_size=1, max_size=4), st.integers(1, 120), REPEATED_PARTS)
def test_candidates_in_the_same_text_get_what_each_would_get(
    parts: list[str], number: int, between: str
) -> None:
    unit = "".join(parts)
    text = unit * number + between + unit * number
    data, offsets = text_buffers(pl.Series([text]))
    for scan, own in zip(SCANS, windows_of(data, offsets, SCANS), strict=True):
        found = candidates(data, own, scan)
        checked = check_candidates(data, offsets, scan, found).tolist()
        assert checked == read_by_themselves(text, scan, found.tolist())


PARTS = REPEATED_PARTS | st.sampled_from(EXAMPLES)


@settings(max_examples=30)
@example(["密码："], "é@é.рф")
@example(["password=aB3xY9zQ"], "x")
@example(["joe:x1!@tcp("], "+1 (212) 555-1234")
@example(["=b@cd.ef.gh.ij.kl.mn.op.qr.st"], "")
@given(st.lists(PARTS, min_size=1, max_size=4), PARTS)
def test_a_long_window_has_the_same_candidates_in_pieces(parts: list[str], between: str) -> None:
    unit = "".join(parts)
    text = unit * (6_000 // len(unit.encode() or b"-")) + between + unit * 300
    data, offsets = text_buffers(pl.Series([text]))
    for scan, own in zip(SCANS, windows_of(data, offsets, SCANS), strict=True):
        if len(own):
            pieces = list(candidates_in(data, own, scan, 2_048))
            assert np.concatenate(pieces).tolist() == candidates(data, own, scan).tolist()


@pytest.mark.parametrize("gap", ["\n", " "])
def test_memory_for_a_list_grows_with_its_size(gap: str) -> None:
    text = "93.184.216.34" + gap
    peaks = []
    for number in (5_000, 10_000):
        texts = pl.Series([text * number])
        find_pii(texts, PiiConfig())
        tracemalloc.start()
        find_pii(texts, PiiConfig())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.2 * peaks[0] + 100_000
    assert peaks[1] < 10_000 * len(text) * 40


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (MAX_VALUES + 1, "a@b.io "),
        (MAX_VALUES // 2 + 1, "a@b.io 93.184.216.34\n"),
        (MAX_VALUES // 2 + 1, "a@b.io password=aB3xY9\n"),  # some in a second search
    ],
)
def test_a_text_with_too_many_values_has_no_spans_and_no_text(number: int, text: str) -> None:
    changed, spans, frame = find("to c@d.io", text * number, "a@b.io " * MAX_VALUES)

    assert changed == ["to <EMAIL>", "", "<EMAIL> " * MAX_VALUES]
    assert [len(own) for own in spans] == [1, 0, MAX_VALUES]
    assert frame["pii_total"].to_list() == [1, MAX_VALUES + 1, MAX_VALUES]
    assert frame["pii_email"].to_list() == [1, 0, MAX_VALUES]
    assert find(text * number, action="tag")[0] == [text * number]


def test_a_list_of_values_is_not_read_to_its_end() -> None:
    read = 0

    def count(text: str, start: int, end: int) -> Iterator[Span]:
        nonlocal read
        read += 1
        yield start, end

    scans = [scan._replace(check=count) for scan in SCANS if scan.kind == "email"]
    emails = "\n".join(f"a{number}@b.io" for number in range(100_000))

    _, unsure, is_full = find_once(pl.Series([emails]), scans)

    assert (unsure.tolist(), is_full.tolist()) == ([], [True])
    assert MAX_VALUES < read < MAX_VALUES + 10_000


@cases(r"""
    text
    "write to ⟦jane\xad.doe@exam\xadple.com⟧, bye"
    "⟦jane.doe@exa\u200bmple.com⟧ and ⟦j\u200eane@ex\u200dample.com⟧\u200b."
    naïve — ⟦jane.doe&#64;example&#46;com⟧ &#8212; ⟦j&#x61;ne&amp;#64;example.com⟧
    '{"mail": "é\\u00e9 ⟦jane\\u0040example.com⟧"}'
    ⟦jane@<b>example</b>.com⟧ <b>or</b> not
    写信给⟦ｊａｎｅ＠ｅｘａｍｐｌｅ．ｃｏｍ⟧，谢谢
    "card ⟦4111\u200b1111\u200b1111\u200b1111⟧"
    "iban ⟦DE89\xad3704\xad0044\xad0532\xad0130\xad00⟧"
    "key ⟦AKIA\xad" + "Q3EGRXK7\xad7ZLWN5DT⟧ of a page"
    "ﬁne &#38; naïve ½ \U0001f600, a\xadb &copy; 2\u200b3"
""")
def test_a_value_with_something_in_it_that_nobody_sees_is_found(text: str) -> None:
    plain = text.replace("⟦", "").replace("⟧", "")
    assert marked(plain) == text
    redacted = find(plain)[0]
    assert find(*redacted)[0] == redacted


def test_a_disguised_value_is_found_far_into_a_long_text() -> None:
    text = "so\xadft words " * 40_000 + "j\xadane@example.com" + " a\xadb" * 1_000
    assert find(text)[0] == [text.replace("j\xadane@example.com", PLACEHOLDERS["email"])]


def test_offsets_are_characters() -> None:
    text = "日本👩‍🔬é a@b.com и 93.184.216.34"

    _, spans, frame = find(text, action="tag")

    first, second = {"kind": "email", "start": 7, "end": 14}, {"kind": "ip", "start": 17, "end": 30}
    assert spans == [[first, second]]
    counts = {f"pii_{kind}": int(kind in ("email", "ip")) for kind in DEFAULT_KINDS}
    assert frame.drop("pii_spans").row(0, named=True) == counts | {"pii_total": 2}


def test_placeholders_replace_the_spans_that_are_wanted() -> None:
    texts = pl.Series("text", ["é a@b.com, 123-45-6789!", "nothing"])
    assert find(*texts, placeholders={"ssn": "[SSN]"})[0] == ["é <EMAIL>, [SSN]!", "nothing"]
    assert find("a@b.com", action="tag")[0] == ["a@b.com"]
    assert find("4111-1111-1111-1111@bank.com")[0] == ["<EMAIL>"]  # the longer of two counts
    changed, _, frame = find("a@b.com 123-45-6789", kinds=("ssn", "phone"))
    assert changed == ["a@b.com <SSN>"]
    assert frame.columns == ["pii_spans", "pii_ssn", "pii_phone", "pii_total"]
    find_pii(texts, PiiConfig())
    assert texts.to_list() == ["é a@b.com, 123-45-6789!", "nothing"]  # as it was given


@pytest.mark.parametrize("placeholder", ["", "EMAIL", "a@b.com", "<1>", "<a>b"])
def test_placeholders_without_brackets_are_refused(placeholder: str) -> None:
    with pytest.raises(ValidationError, match="placeholders"):
        PiiConfig(placeholders={"email": placeholder})


def test_no_rows_give_typed_columns() -> None:
    span = pl.List(pl.Struct({"kind": pl.String, "start": pl.Int64, "end": pl.Int64}))

    _, frame = find_pii(pl.Series("text", [], dtype=pl.String), PiiConfig())

    counts = {f"pii_{kind}": pl.Int64 for kind in DEFAULT_KINDS}
    assert dict(frame.schema) == {"pii_spans": span, **counts, "pii_total": pl.Int64}


ADVERSARIAL = [
    "a@a",
    "a@a.",
    "a@a.aa ",
    "1-",
    "1111-",
    "1.",
    ":",
    "2001:",
    BEGIN,
    f"{BEGIN}\n{PEM_LINE}\n",
    "+1 ",
    "+49 30 ",
    "555-555-5555-",
    "123-45-6789",
    "eyJeyJabcdefg",
    "eyJabcdefgh.",
    "AA11",
    "DE89 3704 0044 0532 0130 00 ",
    "tel. 1 ",
    "key='",
    "://a",
    "://a:b@",
    "password is ",
    "password='",
    "пароль",
    "pw=a pw:",
    "a=",
    "a@[1.1.1.1]",
    'a"@b.io',
    "a at b dot ",
    "(1 ",
    "020 7946 0958 ",
    "mysql -pab ",
    "A",
    " ",
    "é",
    "\n",
]


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_candidates_share_no_character_and_reach_grows_with_the_text(unit: str) -> None:
    sizes = []
    for length in (20_000, 40_000):
        text = unit * (length // len(unit))
        data = np.frombuffer(text.encode(), np.uint8)
        whole = np.array([[0, 0, len(data)]])
        lengths = [np.diff(candidates(data, whole, scan)[:, 1:]) for scan in SCANS]
        sizes.append(sum(own.sum() + len(own) for own in lengths))
        for own in lengths:
            assert own.sum() <= len(data)

    assert sizes[1] <= 2 * sizes[0] + 200


@pytest.mark.slow
@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_one_megabyte_keeps_what_is_no_span(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    (changed,), (spans,), frame = find(text)

    has_too_many = frame["pii_total"].item() > MAX_VALUES
    assert changed == ("" if has_too_many else rebuilt(text, spans))


def test_luhn_and_mod97_see_one_wrong_digit() -> None:
    assert passes_luhn("4111111111111111") and not passes_luhn("4111111111111121")
    assert passes_mod97("GB29NWBK60161331926819")
    assert not passes_mod97("GB29NWBK60161331926818")


def rebuilt(text: str, spans: list[dict[str, object]]) -> str:
    parts, done = [], 0
    for span in spans:
        start, end = int(str(span["start"])), int(str(span["end"]))
        assert done <= start < end <= len(text)
        parts += [text[done:start], PLACEHOLDERS[span["kind"]]]  # type: ignore[index]
        done = end
    return "".join([*parts, text[done:]])


PIECES = st.one_of(
    st.sampled_from(EXAMPLES + NOT_FOUND + list(PLACEHOLDERS.values())),
    st.sampled_from(
        [
            *("password is ", "pw: ", "password=", "://u:", "@h.io", '"', "'", "tel. ", "ip ", "v"),
            *("-", ".", ":", "/", "+", "(", ")", " ", "\n", "=", "é", "日"),
        ]
    ),
    st.text("0123456789-.: +@ab<>", max_size=20),
    st.text(max_size=5),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.mark.slow
@many_examples(300)
@given(TEXTS)
def test_text_outside_the_spans_is_unchanged(text: str) -> None:
    (changed,), (spans,), frame = find(text)

    assert rebuilt(text, spans) == changed
    assert frame["pii_total"].to_list() == [len(spans)]


@pytest.mark.slow
@many_examples(500)
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    (once,), _, _ = find(text)
    (twice,), (spans,), _ = find(once)

    assert (twice, spans) == (once, [])


@pytest.mark.slow
@many_examples(50)
@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4))
def test_rows_do_not_know_each_other(first: list[str], second: list[str]) -> None:
    both, spans, _ = find(*first, *second)

    assert both == find(*first)[0] + find(*second)[0]
    assert spans == find(*first)[1] + find(*second)[1]
