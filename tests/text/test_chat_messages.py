"""Messages come back from their text, with or without corrections in between."""

from prelude import given, pl, pytest, st

from assets.filtered.normalize import normalize_text
from assets.filtered.pii.find_pii import find_pii_in_chats
from assets.text.chat_messages import (
    ROLES,
    TOOLS,
    ChatError,
    Message,
    join_messages,
    split_messages,
)
from resources.settings.filtering.filter_steps import NormalizeConfig, PiiConfig

CONTENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=[
    chr(code) for code in range(0xFDD0, 0xFDF0)]), max_size=30)  # fmt: skip
CHATS = st.lists(
    st.builds(Message, st.sampled_from((*ROLES, TOOLS)), *[CONTENTS] * 4), min_size=1, max_size=6
)


@given(CHATS)
def test_messages_come_back(messages: list[Message]) -> None:
    assert split_messages(join_messages(messages)) == messages


@given(CHATS)
def test_roles_survive_normalisation_and_placeholders(messages: list[Message]) -> None:
    text = pl.Series("text", [join_messages(messages)])
    edited, _ = find_pii_in_chats(normalize_text(text, NormalizeConfig()), PiiConfig())
    assert [m.role for m in split_messages(edited[0])] == [m.role for m in messages]


def test_a_content_cannot_begin_a_message() -> None:
    with pytest.raises(ChatError, match="U\\+FDD2"):
        join_messages([Message("user", "a\ufdd2b")])


def test_places_of_personal_data_are_those_in_the_whole_text() -> None:
    text = join_messages([Message("user", "hello"), Message("assistant", "write to a.b@corp.org")])
    _, report = find_pii_in_chats(pl.Series("text", [text]), PiiConfig())
    span = report["pii_spans"][0][0]
    assert text[span["start"] : span["end"]] == "a.b@corp.org"
