"""Subtitles: SubRip and WebVTT as players, editors, rippers and speech recognisers write them."""

from input_files import COMPRESS, read, texts, write
from prelude import Path, given, pytest, settings, st

from assets.raw.readers.formats import tell_format

T1, T2, T3 = (
    "00:00:01,000 --> 00:00:02,000",
    "00:00:02,100 --> 00:00:03,000",
    "00:00:09 --> 00:00:10",
)
FILES = {
    # SubRip
    "one.srt": (f"1\n{T1}\nBees fly.\n", "Bees fly."),
    "crlf.srt": (f"\ufeff1\r\n{T1}\r\nBees\r\nfly.\r\n\r\n2\r\n{T2}\r\nSo.\r\n", "Bees fly.\nSo."),
    "cr.srt": (f"1\r{T1}\rBees fly\r\r2\r{T2}\rand sing.\r", "Bees fly and sing."),
    "no_last_newline.srt": (f"1\n{T1}\nBees\n\n2\n{T2}\nfly", "Bees fly"),
    "no_numbers.srt": (f"{T1}\nBees\n\n{T2}\nfly.\n", "Bees fly."),
    "no_blank_lines.srt": (f"1\n{T1}\nBees\n2\n{T2}\nfly.\n", "Bees fly."),
    "all_blank_lines.srt": (f"1\n\n{T1}\n\nBees\n\n2\n\n{T2}\n\nfly.\n", "Bees fly."),
    "blank_in_cue.srt": (f"1\n{T1}\nBees\n\nfly\n\n2\n{T2}\nfar.\n", "Bees fly far."),
    "a_number_said.srt": (f"1\n{T1}\n42\n\n2\n{T2}\n43\n", "42\n43"),
    "empty_cue.srt": (f"1\n{T1}\n\n2\n{T2}\nfly.\n", "fly."),
    "styled.srt": (
        f'1\n{T1}\n{{\\an8}}<i>Bees</i> <font color="#ffff00">fly</font>\n\n'
        f"2\n{T2}\n{{y:i}}<B>a < b</B> {{not a tag}} <3\n",
        "Bees fly a < b {not a tag} <3",
    ),
    "positions.srt": (f"1\n{T1}  X1:201 X2:516 Y1:397 Y2:423\nBees fly.\n", "Bees fly."),
    "dialogue.srt": (
        f"1\n{T1}\n- Bees fly\n- They do\n\n2\n{T2}\nas birds.\n",
        "- Bees fly\n- They do as birds.",
    ),
    "dashes.srt": (f"1\n{T1}\n–Bees fly\n—They do\n", "–Bees fly\n—They do"),
    "quotes.srt": (f"1\n{T1}\n“Fly!”\n\n2\n{T2}\nhe said.\n", "“Fly!”\nhe said."),
    "pause.srt": (f"1\n{T1}\nBees\n\n2\n{T3}\nfly.\n", "Bees\n\nfly."),
    "short_pause.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\nBees\n\n2\n00:00:03,500 --> 00:00:04,000\nFly\n\n"
        "3\n00:00:05,500 --> 00:00:06,000\nand sing\n",
        "Bees\nFly and sing",
    ),
    "lyrics.srt": (f"1\n{T1}\n♪ Bees fly ♪\n\n2\n{T2}\n♪ so do I ♪\n", "♪ Bees fly ♪\n♪ so do I ♪"),
    "dots.srt": ("1\n00:00:01.5 --> 00:00:02.25\nBees fly.\n", "Bees fly."),
    "one_dash.srt": ("1\n0:0:1,0 -> 0:0:2,0\nBees fly.\n", "Bees fly."),
    "chinese.srt": (f"1\n{T1}\n蜜蜂\n飞\n\n2\n{T2}\n很远\n", "蜜蜂 飞\n很远"),
    "arabic.srt": (f"1\n{T1}\nيطير النحل\n\n2\n{T2}\nبعيدا\n", "يطير النحل\nبعيدا"),
    # WebVTT
    "one.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nBees fly.\n", "Bees fly."),
    "header.vtt": (
        "\ufeffWEBVTT - Bees\nKind: captions\n\n1\n00:01.000 --> 00:02.000\nFly.\n",
        "Fly.",
    ),
    "numbers.vtt": (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n42\n\n00:02.000 --> 00:03.000\n43\n",
        "42\n43",
    ),
    "unseen.vtt": (
        "WEBVTT\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:fred\n\nNOTE by Ann\nhidden\n\n"
        "intro\n00:01.000 --> 00:02.000 region:fred align:start\nNOTES fly.\n\nNOTE\nx\n",
        "NOTES fly.",
    ),
    "voices.vtt": (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann Lee>Bees &amp; birds</v>\n"
        "<v.loud Bob><c.yellow.bg>fly</c> &lt;far&gt;<lang en>.</lang>\n",
        "Bees & birds fly <far>.",
    ),
    "ruby.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\n<ruby>蜂<rt>hachi</rt></ruby>\n", "蜂hachi"),
    "word_by_word.vtt": (
        "WEBVTT\nKind: captions\nLanguage: en\n\n00:00:00.160 --> 00:00:02.149 align:start\n \n"
        "bees<00:00:00.480><c> fly</c>\n\n00:00:02.149 --> 00:00:02.159 line:0\nbees fly\n \n\n"
        "00:00:02.159 --> 00:00:04.000 align:start\nbees fly\nvery<00:00:03.000><c> far</c>\n",
        "bees fly very far",
    ),
    "hours.vtt": ("WEBVTT\n\n100:00:01.000 --> 100:00:02.000\nBees fly.\n", "Bees fly."),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_said_is_one_document(tmp_path: Path, name: str) -> None:
    data, said = FILES[name]

    chunk = read(write(tmp_path, name, data))

    assert (texts(chunk), chunk.quarantine.height) == ([said], 0)
    assert chunk.documents["origin"].struct.field("row").to_list() == [0]


@pytest.mark.parametrize(
    ("name", "data", "broken"),
    [
        ("a.srt", f"1\n{T1}\nBees.\n\n2\n00:0x:01,000 --> 00:00:02,000\nFly.\n\n3\n{T2}\nSo.\n", 5),
        ("b.srt", f"Made by Ann\n\n1\n{T1}\nBees.\n\n2\n{T2}\nSo.\n", 1),
        ("c.vtt", f"WEBVTT\n\n{T1}\nBees.\n\n2\n00:01.000 --> \nFly.\n\n{T2}\nSo.\n", 6),
    ],
)
def test_a_cue_without_times_is_alone_in_quarantine(
    tmp_path: Path, name: str, data: str, broken: int
) -> None:
    chunk = read(write(tmp_path, name, data))

    assert texts(chunk) == ["Bees.\nSo."]
    [row] = chunk.quarantine.rows(named=True)
    assert (row["line"], row["error"][:25]) == (broken, "subtitle cue has no times")
    assert row["raw"].decode() == data.split("\n\n")[int(row["position"].split()[1]) - 1]


@pytest.mark.parametrize("data", ["Bees fly.\n\nSo.\n", "{1}{25}Bees fly.\n", "[00:01.00]Bees"])
def test_a_file_of_another_kind_is_one_record_in_quarantine(tmp_path: Path, data: str) -> None:
    chunk = read(write(tmp_path, "a.srt", data))

    assert (texts(chunk), chunk.quarantine["raw"].to_list()) == ([], [data.encode()])
    assert chunk.quarantine["next_step"][0].startswith("Correct the times")


def test_other_encodings_packed_and_large_files(tmp_path: Path) -> None:
    data = f"1\n{T1}\nGrüße.\n"
    packed = {"zst": "a.srt.zst", "gz": "a.vtt.gz"}
    for compression, name in packed.items():
        file = write(tmp_path, name, COMPRESS[compression](data.encode()))
        assert texts(read(file)) == ["Grüße."]
    faults = {
        "latin.srt": (data.encode("latin-1"), "not valid UTF-8: byte 0xfc"),
        "wide.srt": (data.encode("utf-16"), "this is UTF-16: convert it with iconv"),
        "large.srt": (data.encode() * 99, "above max_record_bytes=1,024"),
        "cut.srt.gz": (COMPRESS["gz"](data.encode())[:-12], "stream is broken"),
    }
    for name, (content, reason) in faults.items():
        chunk = read(write(tmp_path, name, content), max_record_bytes=1024)
        assert texts(chunk) == [], name
        assert reason in chunk.quarantine["error"][0], name


@pytest.mark.parametrize("name", ["a.srt", "A.SRT", "a.vtt.gz"])
def test_names_tell_the_format(name: str) -> None:
    assert tell_format(name)[0] == "subtitles"


@settings(max_examples=200)
@given(st.text(alphabet="ab \n\r19:,.->{}<i/v>\\", max_size=80))
def test_any_text_ends_in_documents_or_quarantine(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    chunk = read(write(folder, "a.srt", f"1\n{T1}\nBees\n\n{text}"))

    assert texts(chunk)[0].startswith("Bees") or chunk.quarantine.height
