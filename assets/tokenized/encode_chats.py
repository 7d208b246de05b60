"""Encode conversations to token ids, and mark the tokens that are learned.

The template's special tokens become ids; text that only spells one, in a message, stays text. So a
special token in a message is quoted while the template renders, the result is cut at the special
tokens, and the pieces between them are encoded as any text is. That gives the ids of `tokenizers`
for the whole text, which is compared on conversations of every part.

A template renders a conversation in Python (40 to 200 us): this is no path for web text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.chat_messages import ASSISTANT, LEARNED, ChatError, Message, split_messages
from assets.text.list_columns import list_series
from assets.tokenized.chat_template_files import REFUSED
from assets.tokenized.chat_templates import ChatTemplate, TemplateRefusal
from assets.tokenized.encode_documents import (
    TokenFormat,
    compared_texts,
    sample_of,
    slices_of,
)
from assets.tokenized.encoders import Encoder, Encoders, ReferenceEncoder
from assets.tokenized.marked_turns import about
from assets.tokenized.render_chats import NOTHING, Rendered, render_chat
from assets.tokenized.token_spellings import byte_starts
from assets.tokenized.tokenizer import TokenizerError

COMPARED_CHATS = 8  # of every part, with the ids that `tokenizers` gives the whole text
QUOTE, UNQUOTE = "\ufde2", "\ufde3"  # around the number of a special token that content spells
QUOTED = re.compile(f"{QUOTE}([0-9]+){UNQUOTE}")
REJECTED_SCHEMA = {"doc_id": pl.String, "reason": pl.String, "error": pl.String}
UNREADABLE, EMPTIED = "chat_unreadable", "empty_message"
UNLEARNED = "nothing_learned"

Hundredths = NDArray[np.uint8]


@dataclass(frozen=True)
class EncodedChats:
    """Encoded conversations, as `encode_documents` returns documents, with their masks.

    encoded: doc_id, tokens, loss_mask List(Boolean), True for a token that is learned, or
    List(UInt8) with its weight in hundredths if the source wants weights, and `turns` List(Int64),
    the tokens of each conversation that a document is split into; texts: what their tokens spell
    without the marks around a document, String, in the same order; rejected: the columns
    REJECTED_SCHEMA.
    """

    encoded: pl.DataFrame
    texts: pl.Series
    rejected: pl.DataFrame


class SpecialTokens(NamedTuple):
    """Special tokens: a pattern of their spellings, as they take blanks beside them, and ids."""

    pattern: re.Pattern[str]
    spelled: re.Pattern[str]
    spellings: list[str]
    numbers: dict[str, int]  # of the spellings
    ids: dict[str, int]


class Pieces(NamedTuple):
    """A rendered conversation, cut at its special tokens.

    `texts`, and in `learned` the (start, stop, weight) of bytes in each that are; `special` has the
    (id, weight) behind each text but the last. Weights are in hundredths.
    """

    texts: list[str]
    learned: list[list[tuple[int, int, int]]]
    special: list[tuple[int, int]]


class RejectedChatError(ValueError):
    """A conversation that is left out, and the reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def encode_chats(
    documents: pl.DataFrame, encoders: Encoders, form: TokenFormat, template: ChatTemplate
) -> EncodedChats:
    """Encode conversations (doc_id, text as of `join_messages`); reject those that cannot be.

    A mark that the template writes itself, at the begin or the end, is not put there twice. Raises
    TokenizerError if the pieces of a text have other ids than the text.
    """
    special = special_tokens(encoders.reference)
    encoder = encoders.exact_on(compared_texts(documents))
    check_whole(sample_of(documents)["text"], encoders.reference, template, special)
    columns = ChatColumns(encoder, encoders.reference, form, special)
    for rows in slices_of(documents["text"].str.len_bytes().to_numpy()):
        columns.add(documents["doc_id"][rows], documents["text"][rows], template)
    return columns.take(template.learn == "weights")


@dataclass
class ChatColumns:
    """Ids, masks and texts of conversations, one or more of a document, as they were added."""

    encoder: Encoder
    reference: ReferenceEncoder
    form: TokenFormat
    special: SpecialTokens
    doc_ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ids: list[NDArray[Any]] = field(default_factory=list)
    masks: list[Hundredths] = field(default_factory=list)
    rejected: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, doc_ids: pl.Series, texts: pl.Series, template: ChatTemplate) -> None:
        """Render and encode some conversations together."""
        kept, chats = list[str](), list[Pieces]()
        for doc_id, text in zip(doc_ids, texts, strict=True):
            try:
                turns = [cut(each, self.special) for each in render(text, template, self.special)]
            except RejectedChatError as error:
                self.rejected[doc_id] = error.reason, str(error)
                continue
            chats += turns
            kept += [doc_id] * len(turns)
        bare = [without_marks(chat, self.form) for chat in chats]
        encoded = encode_pieces([chat for chat, _ in bare], self.encoder, self.reference)
        begin = [] if self.form.begin_id is None else [self.form.begin_id]
        for doc_id, (chat, ends), (ids, mask) in zip(kept, bare, encoded, strict=True):
            flags = np.concatenate([np.zeros(len(begin)), mask, [ends]]).astype(np.uint8)
            if not flags[1:].any():  # nothing predicts the first token
                self.rejected[doc_id] = UNLEARNED, "no token is the assistant's"
                continue
            self.doc_ids.append(doc_id)
            self.texts.append(spelled(chat, self.special))
            marked = [begin, ids, [self.form.end_id]]
            self.ids.append(np.concatenate([np.array(part, self.form.dtype) for part in marked]))
            self.masks.append(flags)

    def take(self, is_weighted: bool) -> EncodedChats:
        """Return what was added, with flags or weights."""
        name, marks = self.reference.tokenizer.id_to_token, (self.form.end_id, self.form.begin_id)
        between = "".join(name(mark) or "" for mark in marks if mark is not None)
        columns = {"doc_id": self.doc_ids, "turns": [*map(len, self.ids)], "text": self.texts}
        schema = {"doc_id": pl.String, "turns": pl.Int64, "text": pl.String}
        documents = (
            pl.DataFrame(columns, schema)
            .group_by("doc_id", maintain_order=True)
            .agg("turns", pl.col("text").str.join(between))
        )
        offsets = np.cumsum([0, *documents["turns"].list.sum()], dtype=np.int64)
        ids = np.concatenate([np.zeros(0, self.form.dtype), *self.ids])
        masks = np.concatenate([np.zeros(0, np.uint8), *self.masks])
        encoded = pl.DataFrame(
            [
                documents["doc_id"],
                list_series(ids, offsets).alias("tokens"),
                list_series(masks if is_weighted else masks > 0, offsets).alias("loss_mask"),
                documents["turns"],
            ]
        )
        kept = {*self.doc_ids}
        rows = [(doc_id, *why) for doc_id, why in self.rejected.items() if doc_id not in kept]
        rejected = pl.DataFrame(rows, schema=REJECTED_SCHEMA, orient="row")
        return EncodedChats(encoded, documents["text"], rejected)


def check_whole(
    texts: pl.Series, reference: ReferenceEncoder, template: ChatTemplate, special: SpecialTokens
) -> None:
    """Compare the ids of some conversations with those that `tokenizers` gives the whole text.

    Raises TokenizerError if they differ. One that spells a special token has other ids on purpose.
    """
    from tokenizers import Tokenizer

    whole = Tokenizer.from_str(reference.tokenizer.to_str())
    whole.encode_special_tokens = False
    whole.no_truncation()
    whole.no_padding()
    for text in texts.head(COMPARED_CHATS):
        try:
            rendered = render(text, template, special)[-1]
        except RejectedChatError:
            continue
        if QUOTE in rendered.text:
            continue
        ids, _ = encode_pieces([cut(rendered, special)], reference, reference)[0]
        if whole.encode(rendered.text, add_special_tokens=False).ids != ids.tolist():
            raise TokenizerError(
                "the tokenizer gives a conversation other ids than its pieces between special "
                "tokens, as one with `prepend_scheme: first` does, so that it is not known what is "
                f"learned. Name another one in tokenizer.path. Rendered: {rendered.text[:200]!r}"
            )


def render(text: str, template: ChatTemplate, special: SpecialTokens) -> list[Rendered]:
    """Render a conversation, or those of its turns, their special tokens quoted.

    RejectedChatError if that fails.
    """
    try:
        messages = split_messages(text)
    except ChatError as error:
        raise RejectedChatError(UNREADABLE, str(error)) from error
    for number, message in enumerate(messages):
        if not message.content.strip() and not message.tool_calls and message.role != "tool":
            raise RejectedChatError(EMPTIED, f"message {number} has no text left")
    try:
        quoted = [
            Message(role, *(quote(text, special) for text in texts)) for role, *texts in messages
        ]
        chats = conversations_of_turns(quoted) if template.is_split else [quoted]
        return [render_chat(template, chat, special.pattern) for chat in chats]
    except TemplateRefusal as error:
        raise RejectedChatError(REFUSED, str(error)) from error


def conversations_of_turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the conversation up to the end of each turn, of which only that turn is learned.

    A turn is what the assistant says and does until the user speaks again. One of which nothing is
    learned has no conversation, but for the last one of all.
    """
    starts = [i for i, each in enumerate(messages) if each.role == "user"]
    unlearned = [m._replace(about=json.dumps(about(m) | {LEARNED: False})) for m in messages]
    chats = list[list[Message]]()
    for start, stop in pairwise([0, *starts, len(messages)]):
        answers = [i for i in range(start, stop) if messages[i].role == ASSISTANT]
        if any(about(messages[i]).get(LEARNED, True) for i in answers):
            chats.append([*unlearned[:start], *messages[start : answers[-1] + 1]])
    return chats or [[*messages]]


def quote(content: str, special: SpecialTokens) -> str:
    """Quote the special tokens that a message spells."""
    return special.spelled.sub(
        lambda found: f"{QUOTE}{special.numbers[found[0]]}{UNQUOTE}", content
    )


def unquote(text: str, special: SpecialTokens) -> str:
    """Put the spellings back."""
    return QUOTED.sub(lambda found: special.spellings[int(found[1])], text)


def special_tokens(reference: ReferenceEncoder) -> SpecialTokens:
    """Return the special tokens of a tokenizer."""
    added = reference.tokenizer.get_added_tokens_decoder()
    ids = {token.content: token_id for token_id, token in added.items() if token.special}
    tokens = [token for token in added.values() if token.special and token.content]
    in_order = sorted(tokens, key=lambda token: (-len(token.content), token.content))
    spellings = [token.content for token in in_order]
    if not spellings:
        return SpecialTokens(NOTHING, NOTHING, [], {}, {})
    blanks = {True: r"\s*", False: ""}
    taking = [
        blanks[token.lstrip] + f"(?:{re.escape(token.content)})" + blanks[token.rstrip]
        for token in in_order
    ]
    exact = "|".join(map(re.escape, spellings))
    numbers = {spelling: number for number, spelling in enumerate(spellings)}
    return SpecialTokens(re.compile("|".join(taking)), re.compile(exact), spellings, numbers, ids)


def cut(rendered: Rendered, special: SpecialTokens) -> Pieces:
    """Cut a rendered conversation at its special tokens."""
    text = rendered.text
    texts, learned, ids = list[str](), list[list[tuple[int, int, int]]](), list[tuple[int, int]]()
    start = 0
    for found in special.pattern.finditer(text):
        texts.append(unquote(text[start : found.start()], special))
        learned.append(spans_within(rendered, start, found.start(), special))
        spans = zip(rendered.learned, rendered.weights, strict=True)
        weights = (w for (a, b), w in spans if a < found.end() and b > found.start())
        ids.append((special.ids[found[0].strip() or found[0]], max(weights, default=0)))
        start = found.end()
    texts.append(unquote(text[start:], special))
    learned.append(spans_within(rendered, start, len(text), special))
    return Pieces(texts, learned, ids)


def spans_within(
    rendered: Rendered, start: int, stop: int, special: SpecialTokens
) -> list[tuple[int, int, int]]:
    """Return what is learned of the characters [start, stop) of a text, as bytes from `start`.

    And the weight of each span.
    """

    def byte_of(place: int) -> int:
        return len(unquote(rendered.text[start:place], special).encode())

    spans = zip(rendered.learned, rendered.weights, strict=True)
    within = ((max(a, start), min(b, stop), weight) for (a, b), weight in spans)
    return [(byte_of(a), byte_of(b), weight) for a, b, weight in within if a < b]


def encode_pieces(
    chats: Sequence[Pieces], encoder: Encoder, reference: ReferenceEncoder
) -> list[tuple[NDArray[np.uint32], Hundredths]]:
    """Return the ids and the mask of each conversation; texts of all are encoded together."""
    texts = [text for chat in chats for text in chat.texts]
    spans = [each for chat in chats for each in chat.learned]
    if not texts:
        return []
    ids, offsets = encoder.encode(texts)
    starts = byte_starts(pl.Series(texts, dtype=pl.String), ids, offsets, reference)
    mask = np.zeros(ids.size, np.uint8)
    for number, learned in enumerate(spans):
        if learned:
            these = slice(int(offsets[number]), int(offsets[number + 1]))
            size = len(texts[number].encode())
            mask[these] = overlaps(starts[these], size, learned)
    encoded, piece = [], 0
    for chat in chats:
        parts, flags = list[NDArray[np.uint32]](), list[Hundredths]()
        for token in [*chat.special, None]:
            these = slice(int(offsets[piece]), int(offsets[piece + 1]))
            parts.append(ids[these])
            flags.append(mask[these])
            if token is not None:
                parts.append(np.array([token[0]], np.uint32))
                flags.append(np.array([token[1]], np.uint8))
            piece += 1
        encoded.append((np.concatenate(parts), np.concatenate(flags)))
    return encoded


def overlaps(
    starts: NDArray[np.uint32], size: int, spans: list[tuple[int, int, int]]
) -> Hundredths:
    """Return the weights of tokens that begin at these bytes of a text of `size`: of their span.

    A token that reaches over the border of a span is learned, as in transformers.
    """
    first = starts.astype(np.int64)
    stop = np.append(first[1:], size)
    found = np.zeros(len(first), np.uint8)
    for start, end, weight in spans:
        found[(first < end) & (stop > start)] = weight
    return found


def without_marks(chat: Pieces, form: TokenFormat) -> tuple[Pieces, int]:
    """Leave out the ids of begin and end that a template wrote; return the weight of the end."""
    texts, learned, special = chat
    if special and not texts[0] and special[0][0] == form.begin_id:
        texts, learned, special = texts[1:], learned[1:], special[1:]
    if special and not texts[-1] and special[-1][0] == form.end_id:
        return Pieces(texts[:-1], learned[:-1], special[:-1]), special[-1][1]
    return Pieces(texts, learned, special), 0


def spelled(chat: Pieces, special: SpecialTokens) -> str:
    """Return the text of a conversation."""
    names = {token_id: spelling for spelling, token_id in special.ids.items()}
    between = [*(names[token_id] for token_id, _ in chat.special), ""]
    return "".join(part for pair in zip(chat.texts, between, strict=True) for part in pair)
