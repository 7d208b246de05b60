"""Try a loaded tokenizer before it is used: each id is one entry, and the same text gives the same.

A tokenizer that is not one to one would teach other text than the corpus has. What it only leaves
out (case, accents, runs of blanks) is counted for each part of `tokenized`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

from assets.tokenized.encoders import PROBE_TEXTS, ReferenceEncoder
from assets.tokenized.tokenizer import TokenizerError
from resources.errors import and_more

MOST_TEXTS = 200  # of entries of the vocabulary, beside the probe texts
ENTRIES = 20  # in each of them
MOST_CHANGED = 0.5  # a decoder that joins words in its own way changes some
SHOWN, SHOWN_CHARACTERS = 3, 60


def tried_texts(reference: ReferenceEncoder) -> list[str]:
    """Return texts to try a tokenizer on: the probe texts, and such of its own entries."""
    ids = sorted(reference.tokenizer.get_vocab(with_added_tokens=False).values())
    step = max(1, len(ids) // (MOST_TEXTS * ENTRIES))
    some = ids[::step]
    groups = [some[at : at + ENTRIES] for at in range(0, len(some), ENTRIES)]
    return [*PROBE_TEXTS, *reference.decode(groups[:MOST_TEXTS])]


def encode_once(tokenizer_json: str, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids that a tokenizer.json, loaded for this call, gives to each text."""
    return ids_of(ReferenceEncoder(tokenizer_json), texts)


def ids_of(reference: ReferenceEncoder, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of each text."""
    ids, offsets = reference.encode(list(texts))
    edges = offsets.tolist()
    return [ids[a:b].tolist() for a, b in pairwise(edges)]


def shared_ids(tokenizer_json: str) -> list[str]:
    """List entries of a tokenizer.json that have the id of another one, as `'a' and 'b' (7)`.

    None is listed of a file that is no tokenizer.json.
    """
    try:
        content = json.loads(tokenizer_json)
        vocabulary, added_tokens = content["model"]["vocab"], content.get("added_tokens") or ()
        added = [(token["content"], token.get("id")) for token in added_tokens]
        if isinstance(vocabulary, dict):
            entries = list(vocabulary.items())
        else:
            entries = [(text, number) for number, (text, _) in enumerate(vocabulary)]
    except (ValueError, LookupError, TypeError):
        return []
    first: dict[Any, str] = {}
    shared = dict[str, None]()
    for text, token_id in chain(entries, added):
        if first.setdefault(token_id, text) != text:
            shared[f"{first[token_id]!r} and {text!r} ({token_id})"] = None
    return list(shared)


def refuse_shared_ids(tokenizer_json: str) -> None:
    """Raise TokenizerError if an id stands for more than one entry."""
    if shared := shared_ids(tokenizer_json):
        raise TokenizerError(
            f"entries share an id: {and_more(shared, SHOWN)}. Number the entries of "
            "model.vocab and added_tokens so that each has its own."
        )


def without_dropout(tokenizer_json: str) -> tuple[str, list[str]]:
    """Return a tokenizer.json that leaves out no merge at random, and what was switched off."""
    content = json.loads(tokenizer_json)
    dropout = content.get("model", {}).get("dropout")
    if not dropout:
        return tokenizer_json, []
    content["model"]["dropout"] = None
    return json.dumps(content), [f"dropout {dropout}"]


def changed_texts(reference: ReferenceEncoder, texts: Sequence[str]) -> tuple[list[str], int]:
    """Return the texts whose ids decode to a text with other ids, and the number compared.

    Texts with the unknown token are not compared. A normalizer changes nothing here: what it left
    of a text has the same ids again.
    """
    unknown = reference.unknown_id
    pairs = [
        (text, ids)
        for text, ids in zip(texts, ids_of(reference, texts), strict=True)
        if ids and unknown not in ids
    ]
    again = ids_of(reference, reference.decode([ids for _, ids in pairs]))
    changed = [text for (text, ids), other in zip(pairs, again, strict=True) if ids != other]
    return changed, len(pairs)


def faults_of(
    tokenizer_json: str, encode_there: Callable[[str, list[str]], list[list[int]]]
) -> Iterator[str]:
    """Yield what makes a tokenizer unusable; `encode_there` is `encode_once` in another process."""
    reference = ReferenceEncoder(tokenizer_json)
    texts = tried_texts(reference)
    there = encode_there(tokenizer_json, texts)
    here = ids_of(reference, texts)
    different = [text for text, one, other in zip(texts, here, there, strict=True) if one != other]
    if different:
        yield (
            f"{len(different)} of {len(texts)} texts have other ids in a second process, the first "
            f"{different[0][:SHOWN_CHARACTERS]!r}: every build would give another corpus. Switch "
            "off what is random in the file."
        )
    changed, num_compared = changed_texts(reference, texts)
    if len(changed) > MOST_CHANGED * num_compared:
        yield (
            f"decoding is not one to one: of {num_compared} texts, the ids of {len(changed)} "
            f"decode to a text with other ids, the first {changed[0][:SHOWN_CHARACTERS]!r}. "
            "Correct the decoder of the file."
        )
