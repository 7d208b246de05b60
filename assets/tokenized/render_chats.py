"""Render conversations with a chat template, and tell what of the text is learned.

Of a template with the tag `generation`, its content is learned. Of others, what is learned is what
the model would sample: what stands behind the generation prompt, up to and with the token that ends
the turn. To know where that is, the conversation is rendered a second time with marks
(marked_turns.py), which must change nothing else. A turn of the assistant begins where the text,
from the last mark before it, goes on as the messages before it do with the generation prompt; of a
prompt that the text does not have in whole, such as one that opens a block of reasoning, its first
lines or special tokens count. It ends with what the template writes behind it when nothing follows,
up to the last special token; or with the first special token, if another message follows and the
text goes on otherwise, as for templates whose next turn begins with the token that ends this one.

What the marks also tell: whether the template leaves out what a message says, which is refused.
Only the reasoning before a later answer may be left out, as templates do by design.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from assets.text.chat_messages import (
    ASSISTANT,
    LEARNED,
    OPTIONS,
    REASONING_KEYS,
    TOOLS,
    Message,
)
from assets.tokenized.chat_templates import (
    HAS_GENERATION,
    ChatTemplate,
    TemplateRefusal,
    render_with,
)
from assets.tokenized.marked_turns import (
    MARKED_PARTS,
    Marked,
    Span,
    about,
    as_turn,
    json_of,
    take_marks,
)

UNSAID = (LEARNED, "tool_call_id")  # what is known about a message and needs no text
MARK_TURNS = "put the assistant's turn between {% generation %} and {% endgeneration %} in a copy"
ALL = 100  # hundredths
NOTHING = re.compile(r"(?!)")  # matches nowhere
PROBE = (Message("user", "Hello"), Message(ASSISTANT, "Hello"))


class Rendered(NamedTuple):
    """Text of a conversation, the spans of characters in it that are learned, ascending.

    And for each the weight in the loss, in hundredths.
    """

    text: str
    learned: list[Span]
    weights: list[int]


def render_chat(
    template: ChatTemplate, messages: Sequence[Message], end_of_turn: re.Pattern[str]
) -> Rendered:
    """Render messages; TemplateRefusal if the template does not, or leaves out what it was told.

    `end_of_turn` matches special tokens.
    """
    try:
        return Rendering(template, messages, end_of_turn, "").rendered()
    except TemplateRefusal:
        if not any(each.tool_calls and not each.content.strip() for each in messages):
            raise
        with suppress(TemplateRefusal):  # of a template that asks whether the content is none
            return Rendering(template, messages, end_of_turn, None).rendered()
        raise


class Rendering:
    """A conversation in a template, with and without marks."""

    def __init__(
        self,
        template: ChatTemplate,
        messages: Sequence[Message],
        end_of_turn: re.Pattern[str],
        blank: str | None,
    ) -> None:
        """`blank` is the content of messages that have calls of tools only."""
        self.template, self.end_of_turn = template, end_of_turn
        self.options = json_of(messages, OPTIONS) or {}
        self.tools = json_of(messages, TOOLS)
        self.messages = [each for each in messages if each.role not in (OPTIONS, TOOLS)]
        self.answers = [i for i, each in enumerate(self.messages) if each.role == ASSISTANT]
        self.last_answer = max(self.answers, default=-1)
        self.turns = [as_turn(each, blank) for each in self.messages]
        self.marked_turns = [as_turn(each, blank, i) for i, each in enumerate(self.messages)]
        self.heads, self.closings = dict[str, str](), dict[bool, str]()  # of turns before

    def rendered(self) -> Rendered:
        """Return the text and what is learned; TemplateRefusal if that is not known."""
        whole, marked = self.render(self.turns), self.render(self.marked_turns)
        if lost := self.left_out(whole, marked):
            raise TemplateRefusal(f"the template leaves out {lost}")
        roles, is_marked = {*self.template.roles}, HAS_GENERATION.search(self.template.source)
        if is_marked and roles == {ASSISTANT}:
            return self.learned_spans(whole, marked)
        if whole.text != marked.text:
            raise TemplateRefusal(
                "the template renders a message in another way when something is added to it, so "
                f"that it is not known what is learned: {MARK_TURNS}"
            )
        found = self.learned_spans(whole, marked) if is_marked else self.answers_learned(marked)
        if ASSISTANT not in roles:
            found = Rendered(whole.text, [], [])
        others = [
            self.content(marked, i)
            for i, each in enumerate(self.messages)
            if each.role in roles - {ASSISTANT} and self.is_learned(i)
        ]
        spans = [*zip(found.learned, found.weights, strict=True), *((each, ALL) for each in others)]
        learned, weights = zip(*sorted(spans), strict=True) if spans else ((), ())
        return Rendered(whole.text, [*learned], [*weights])

    def answers_learned(self, marked: Marked) -> Rendered:
        """Return what is learned of the assistant's turns."""
        learned = [i for i in self.answers if self.is_learned(i)]
        spans = [(self.begin(marked, i), self.end(marked, i)) for i in learned]
        return Rendered(marked.text, spans, [*map(self.weight, learned)])

    def content(self, marked: Marked, number: int) -> Span:
        """Return where the content of a message stands, with the token that ends its turn."""
        place = marked.places.get(number, {}).get("content", 0)
        said, text = self.messages[number].content.strip(), marked.text[:place].rstrip()
        if not text.endswith(said):
            raise TemplateRefusal(
                f"the template renders message {number} in another form, so that it is not known "
                "what is learned of it"
            )
        stop = self.end_of_turn.match(marked.text, place)
        return len(text) - len(said), stop.end() if stop else place

    def text(self) -> str:
        """Return the text alone; TemplateRefusal if the template does not render it."""
        return self.render(self.turns).text

    def render(self, turns: Sequence[Mapping[str, Any]], is_prompt: bool = False) -> Marked:
        """Render turns, with the head of the next one if `is_prompt`."""
        values = {
            **dict(self.template.variables),
            "documents": None,
            **self.options,
            "messages": turns,
            "tools": self.tools,
            "add_generation_prompt": is_prompt,
        }
        return take_marks(render_with(self.template, values))

    def is_learned(self, number: int) -> bool:
        """Return whether neither the message nor the source says otherwise."""
        return self.weight(number) > 0

    def weight(self, number: int) -> int:
        """Return the weight of a message in the loss, in hundredths.

        TemplateRefusal for one besides 0 and 100 that the source does not want.
        """
        weight = round(100 * float(about(self.messages[number]).get(LEARNED, 1)))
        if self.template.learn == "last" and number != self.last_answer:
            return 0
        if weight not in (0, ALL) and self.template.learn != "weights":
            raise TemplateRefusal(
                f"message {number} has the weight {weight / 100:g}, which a source with "
                "`learn: weights` obeys"
            )
        return weight

    def left_out(self, whole: Marked, marked: Marked) -> str | None:
        """Return what was told to the template and changes nothing of its text."""
        reads_reasoning = any(name in self.template.source for name in REASONING_KEYS)
        of_turn = [i for i in self.answers if self.template.is_split and self.is_learned(i)]
        for number, message in enumerate(self.messages):
            for part in MARKED_PARTS:
                is_said = part in marked.places.get(number, ())
                is_earlier = number < self.last_answer and number not in of_turn
                may_lack = part == "reasoning" and reads_reasoning and is_earlier
                if is_said or may_lack or not getattr(message, part).strip():
                    continue
                if part != "content" or not self.is_changed(number, whole.text):
                    what = {"content": "", "reasoning": "as reasoning", "tool_calls": "in calls"}
                    return f"what the {message.role} message says {what[part]}".strip()
            for text in texts_about(message):
                if text not in whole.text:
                    return f"{text[:60]!r}, which is said about the {message.role} message"
        for name, value in [("tools", self.tools), *self.options.items()]:
            if isinstance(value, str | list | dict) and value and self.is_same_without(name, whole):
                return f"`{name}`, so that the model would learn from what it was not told"
        return None

    def is_changed(self, number: int, text: str) -> bool:
        """Return whether a text changes with a content whose mark is not in it."""
        turns = [*self.turns]
        turns[number] = self.marked_turns[number]
        try:
            return self.render(turns).text != text
        except TemplateRefusal:  # of a template that reads contents
            return True

    def is_same_without(self, name: str, whole: Marked) -> bool:
        """Return whether the text is the same without the tools or an option."""
        known = (self.tools, self.options)
        try:
            if name == "tools":
                self.tools = None
            else:
                self.options = {key: each for key, each in self.options.items() if key != name}
            return self.text() == whole.text
        except TemplateRefusal:
            return False
        finally:
            self.tools, self.options = known

    def learned_spans(self, whole: Marked, marked: Marked) -> Rendered:
        """Return what the template marks with `generation`, but for turns that are not learned."""
        if {*map(self.weight, self.answers)} == {ALL}:
            return Rendered(whole.text, whole.spans, [ALL] * len(whole.spans))
        found = Rendered(whole.text, [], [])
        for number, (start, stop) in enumerate(marked.spans):
            within = {
                self.weight(i)
                for i, each in marked.places.items()
                if any(start <= place <= stop for place in each.values())
            }
            if len(within) > 1 or len(marked.spans) != len(whole.spans):
                raise TemplateRefusal(
                    "the template marks turns as one of which not all are learned alike"
                )
            if weight := max(within, default=0):
                found.learned.append(whole.spans[number])
                found.weights.append(weight)
        return found

    def begin(self, marked: Marked, number: int) -> int:
        """Return where the turn of an assistant begins, behind the generation prompt."""
        lower = marked.end_of(number - 1)
        text = marked.text[lower : marked.begin_after(number - 1)]
        if number:
            role = self.messages[number - 1].role
            if (known := self.heads.get(role)) and text.startswith(known):
                return lower + len(known)
            with suppress(TemplateRefusal):  # of a template that wants a question first
                before = self.render(self.marked_turns[:number], True)
                head = before.text[before.end_of(number) :]
                if text.startswith(head):
                    self.heads[role] = head
                    return lower + len(head)
        for prompt in self.generation_prompts:
            if prompt in text:
                return lower + text.index(prompt) + len(prompt)
        if number and self.messages[number - 1].role == ASSISTANT:  # the same turn goes on
            return lower
        raise TemplateRefusal(
            f"the generation prompt is not in the text before message {number}, so that it is not "
            f"known what is learned: {MARK_TURNS}"
        )

    @cached_property
    def generation_prompts(self) -> list[str]:
        """Return what the generation prompt adds to a question, and its first lines, longest first.

        None that also stands in the question, as the begin of every turn does.
        """
        turns = [as_turn(PROBE[0], "")]
        asked, prompted = self.render(turns).text, self.render(turns, True).text
        prompt = prompted[shared_begin(asked, prompted) :]
        lines = (found.end() for found in re.finditer("\n", prompt))
        sizes = sorted({len(prompt), *lines, *self.ends_in(prompt)}, reverse=True)
        return [prompt[:size] for size in sizes if prompt[:size] not in asked]

    def end(self, marked: Marked, number: int) -> int:
        """Return where the turn of an assistant ends, behind the token that ends it."""
        start, is_last = marked.end_of(number), number + 1 == len(self.turns)
        text = marked.text[start : marked.begin_after(number)]
        is_next = not is_last and self.messages[number + 1].role == ASSISTANT
        closing = text if is_last else self.closing_alone(number, text)
        if closing is None or not text.startswith(closing):
            ends = self.ends_in(text)
            if not ends and not is_next:
                raise TemplateRefusal(
                    f"the template renders message {number} in another way when others follow, so "
                    f"that it is not known what is learned: {MARK_TURNS}"
                )
            return start + (ends[0] if ends else 0)
        ends = self.ends_in(closing)
        if len(ends) > 1 and is_last:  # one may end the conversation, and not the turn
            followed = self.closing([*self.marked_turns, as_turn(PROBE[0], "")], number)
            shared = closing[: shared_begin(closing, followed or closing)]
            ends = self.ends_in(shared) or ends[:1]
        if ends:
            return start + ends[-1]
        behind = text[len(closing) :]
        stop = None if is_next else self.end_of_turn.match(behind.lstrip())
        size = len(behind) - len(behind.lstrip()) + stop.end() if stop else 0
        return start + len(closing) + size

    def closing_alone(self, number: int, text: str) -> str | None:
        """Return what closes a turn that nothing follows, None if the template refuses that."""
        is_call = bool(self.messages[number].tool_calls)
        known = self.closings.get(is_call)
        if known and text.startswith(known):
            return known
        found = self.closing(self.marked_turns[: number + 1], number)
        if found and self.ends_in(found):
            self.closings[is_call] = found
        return found

    def closing(self, turns: Sequence[Mapping[str, Any]], number: int) -> str | None:
        """Return what follows the last mark of a message in other turns, None if refused."""
        with suppress(TemplateRefusal):
            alone = self.render(turns)
            return alone.text[alone.end_of(number) :]
        return None

    def ends_in(self, text: str) -> list[int]:
        """Return where the special tokens of a text end."""
        return [found.end() for found in self.end_of_turn.finditer(text)]


def shared_begin(first: str, second: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def texts_about(message: Message) -> Iterator[str]:
    """Yield what is said about a message and must be rendered; of results of tools nothing."""
    if message.role != "tool":
        yield from (text for key, text in about(message).items() if key not in UNSAID)
