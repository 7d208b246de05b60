"""Values that look like names, and values beside letters of three bytes: kernels against checks."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from many_examples import many_examples

from assets.filtered.kernels.plain.plain_names import is_technical
from assets.filtered.kernels.plain.plain_values import is_placeholder
from assets.filtered.pii import secret_words
from assets.filtered.pii.candidates import candidates
from assets.filtered.pii.checks import check_candidates
from assets.filtered.pii.clues import windows_of
from assets.filtered.pii.find_pii import find_once
from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan
from assets.text.buffers import text_buffers

DECIDING = [scan for scan in SCANS if scan.decide]

NAMES_AND_MORE = (
    "my admin secret pass password passwd pw token user key id me mon monkey test foo bar goes "
    "foobar mot-de-passe user_name oauth2 x-oauth-basic password(s) to for changeme change-it "
    "n/a xxx DB_PASS md5 sha256- utf8 base64 v2 step-1 pass12 64bit 3rd 10kb 2-way your. My_ "
    "a@0123abc"
)
NAMES = st.sampled_from(NAMES_AND_MORE.split(" "))
BETWEEN = st.sampled_from(["", "", "-", "_", ".", "1", "12", "1234", "12345", "x", "*", "\\*", "!"])
NAMED = st.lists(st.tuples(NAMES, BETWEEN), min_size=1, max_size=5).map(
    lambda parts: "".join(map("".join, parts))
)
NAMED |= NAMED.map(str.upper) | NAMED.map(str.title)

LETTERS = st.text(
    "、。，；！？）」』】।…•·：（「是为は가는이叫です입니다密码张伟ครไहि॥יقग्\u0301\u3000\u00a0éб〇ａ😀§K",
    max_size=3,
)
VALUES = st.lists(NAMED | st.sampled_from(["aB3xY9", "q7L", "$", "{", "/", "`", "&a=", " "]),
                  min_size=1, max_size=3).map("".join)  # fmt: skip
WORDS = "password PASSWORD -pwd Passwort 密码 密碼 口令 パスワード 비밀번호 पासवर्ड รหัสผ่าน пароль"
SIGNS = "=|: |：| is | |是|は、|为：|가 |는: |이|は： |1234|12=|123x|है "
TOLD = st.builds(
    "{}{}{}".format,
    st.sampled_from(WORDS.split(" ")),
    st.sampled_from(SIGNS.split("|")),
    VALUES,
)
SIGNED_PARTS = (
    "' \" ` \\ \\' \\\" <b> <x9> <b0123456> <b01234567> </b> <b <Ab1> aB3xY9 q7L! secret "
    f", . ? : a1; {'a1' * 61} {'x' * 128} é ”"
)
SIGNED = st.builds(
    "{}{}{}".format,
    st.sampled_from(["password=", "PASSWORD: ", "-pwd="]),
    st.lists(st.sampled_from([*SIGNED_PARTS.split(" "), " ", "\n"]), max_size=7).map("".join),
    st.sampled_from(["\n", " password=aB3xY9 ", "'", '"', ""]),
)
LOCALS = st.text("aG1.-=张éคกัकाл〇ー가", max_size=4)
LABELS = st.text("a1-é张भाค가", min_size=1, max_size=3)
TOPS = (
    "org png c0 d info орг 中国 भारत b.com 中 コム ファッション คอม 닷컴 é éé कख कखा का "
    f"orgभ 张org भ1 Kk xn--p1ai السعودية {'é' * 25} {'भा' * 25} {'क' * 70}"
)
ADDRESSES = st.builds(
    "{}{}@{}.{}{}".format,
    st.sampled_from(["", "", "{", "'", "*", "/", "//", "x://", "to=", "A1=", "git", "张", "ü"]),
    LOCALS | st.sampled_from(["张" * 17, "क" * 64, "क" * 65]),
    LABELS | st.sampled_from(["mail", "张" * 22, "张" * 64]),
    st.sampled_from(TOPS.split(" ")),
    LETTERS.flatmap(lambda letters: st.sampled_from(
        [letters, letters + ".b", letters + "(", "}", "'", letters + "c.d@e.org"])),
)  # fmt: skip
URLS = st.builds(
    "http://{}:{}@{}{}".format,
    st.sampled_from(["joe", "a1B2c3D4e5F6g7H8i9"]),
    NAMED | st.sampled_from(["x-oauth-basic", "xabcdefghijkl", "q7L!m2Zt"]),
    st.sampled_from(["b.de", "张", "b"]),
    LETTERS.flatmap(lambda letters: st.sampled_from([letters, letters + "@b", letters + "/"])),
)
COMMANDS = st.builds(
    "{}{}{}{}\n".format,
    st.sampled_from(["mysql -u a -p", "curl -u a:", "redis-cli -a ", "张 ldapsearch -w "]),
    LETTERS | st.just(""),
    NAMED | st.sampled_from(["q7Lm2", "q7L", "a1" * 49, "a1b" * 33]),
    LETTERS,
)
IPS = st.sampled_from(["93.184.216.34", "1.2.3.4", "§93.184.216.34", "版本 93.184.216.34"])
ITEMS = TOLD | SIGNED | ADDRESSES | URLS | COMMANDS | IPS
AFTER = LETTERS | st.sampled_from(["\n", " ", " as the pwd"])
TEXTS = st.lists(st.tuples(LETTERS, ITEMS, AFTER), min_size=1, max_size=3).map(
    lambda items: "".join(map("".join, items))
)


@settings(max_examples=500)
@example("mypass123")
@example("mypass1234")
@example("monkey")
@example("my-my-my-my-my-my-my-password")
@example("md5-a1")
@example("md5-" + "a" * 13)
@example("foobaz")
@example("parolaniz")
@given(NAMED)
def test_names_are_those_of_the_patterns(value: str) -> None:
    data, tree = np.frombuffer(f"a{value}a".encode(), np.uint8), secret_words.word_tree()
    assert is_placeholder(data, 1, len(data) - 1, tree) == secret_words.is_placeholder(value)
    found = is_technical(data, 1, len(data) - 1, tree)
    assert found == bool(secret_words._TECHNICAL.fullmatch(value))


@pytest.mark.parametrize("words", [secret_words._THINGS, secret_words._AFTER_THINGS])
def test_every_word_is_read(words: str) -> None:
    data = "".join(f" {word}" for word in words.replace("~", "-").split()).encode()
    tree = secret_words.word_tree()
    for match in re.finditer(rb"[^ ]+", data):
        value = b"pass" + match[0]
        read = np.frombuffer(value, np.uint8)
        assert is_placeholder(read, 0, len(read), tree)


@pytest.mark.slow
@many_examples(600)
@example("password=mypass12\n")
@example("password md5-ab12 ")
@example("PASSWORD=admin12\n")
@example("password='aB3xY9 ")
@example("password='the aB3xY9' ")
@example("password='" + "a1" * 64 + "'")
@example("password='" + "a1" * 64 + "b'")
@example("password='a\\'B3xY9'")
@example("password='" + "\\a1" * 45 + "b'")
@example("password='" + "\\a1" * 46 + "b'")
@example("password='aB3\\\nxY9'")
@example("password=<b1234567>aB3xY9 ")
@example("password=<b12345678>aB3xY9 ")
@example("password=<baB3xY9 ")
@example("密码：aB3xY9zQ。")
@example("密码：aB3x。Y9")
@example("密码是aB3xY9zQ")
@example("パスワードは、aB3xY9です")
@example("비밀번호는: aB3xY9입니다")
@example("비밀번호는aB3xY9입니다")
@example("密码错误aB3xY9 ")
@example("पासवर्ड: aB3xY।\n")
@example("पासवर्ड: aB3xY।पासवर्ड: aB3x॥")
@example("पासवर्ड: aB1।\n")
@example("password: " + "a1" * 62 + "।")
@example("password: " + "a1" * 63 + "।")
@example("use aB3xY9 as the password1234")
@example("password12 aB3xY9")
@example("邮箱joe@b.org，")
@example("邮joe@b.org或者c.com")
@example("邮joe@b.org，c.com")
@example("a@x.भारत）")
@example("张{joe@b.org}")
@example("张" * 70 + "joe@b.org ")
@example("张" * 70 + "/joe@b.org' ")
@example("张joe@é.org ")
@example("//张joe@b.org ")
@example("อีเมลjoe@b.org ")
@example("张伟@b.org，")
@example("张伟@例子.中国，")
@example("कखा@भा.भारतकखा1@भा.भारत")
@example("joe@भा.भारत।")
@example("joe@张.中国(")
@example("joe@भा.भारत(")
@example("joe@a.भा1 ")
@example("http://a\njoe@b.org。")
@example("http://joe:q7Lm2Z@b。c@d")
@example("http://joe:q7Lm2Z@。")
@example("http://joe:q7Lm2Z@" + "张" * 99 + "@b")
@example("http://a1B2c3D4e5F6g7H8i9:x-oauth-basic@b.de")
@example("curl -u a:q7L，\n")
@example("curl -u a:" + "a1b" * 33 + "，b\n")
@example("§1.1.1.1 93.184.216.34")
@given(TEXTS)
def test_kernels_decide_beside_all_letters_as_the_checks_do(text: str) -> None:
    data, offsets = text_buffers(pl.Series([text, "é"]))
    for scan, own in zip(DECIDING, windows_of(data, offsets, DECIDING), strict=True):
        found = candidates(data, own, scan)
        if len(found):
            decided = check_candidates(data, offsets, scan, found)
            checked = check_candidates(data, offsets, scan._replace(decide=None), found)
            assert sorted(decided.tolist()) == sorted(checked.tolist())


@pytest.mark.parametrize(
    "items",
    [
        ["password=mypass12", "password=admin1234"],
        ["password secret12", "password mypass1234"],
        ["password=md5-q7Lm2", "password is sha256-q7Lm2Zt"],
        ["password=Password3449", "password=changeme"],
        ["密码：q7Lm2Zt。", "口令是q7Lm2Zt，"],
        ["パスワードはq7Lm2Ztです。", "비밀번호는 q7Lm2Zt입니다."],
        ["पासवर्ड: q7Lm2Zt।", "密码错误"],
        ["पासवर्ड: q7Lm2Zt।पासवर्ड: q7Lm2Zt॥"],
        ["邮箱joe@b.org，", "メールはjoe@b.orgまで。"],
        ["메일은 joe@b.org입니다.", "ईमेल joe@b.org।"],
        ["कखग1@कख2.भारत", "张伟12@李娜3.中国"],
        ["อีเมลjoe@b.orgครับ", "张伟@b.orgまで"],
        ["地址93.184.216.34。", "ที่93.184.216.34"],
        ["地址http://joe:q7Lm2Zt@a.de。", "http://joe:mypass12@a.de，"],
        ["运行curl -u joe:q7Lm2Zt，\n", "mysql -u root -pmypass12。\n"],
    ],
)
def test_no_check_is_called_for_these(items: list[str]) -> None:
    def refuse(text: str, start: int, end: int) -> None:
        raise AssertionError(text[start:end])

    scans: list[Scan] = [scan._replace(check=refuse) for scan in DECIDING]  # type: ignore[arg-type]
    for gap in ("\n", " "):
        find_once(pl.Series([gap.join(items * 500) + gap]), scans)
