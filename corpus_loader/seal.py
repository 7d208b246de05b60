"""Seal of a JSON record: a last key with the sha256 of all that comes before it.

    {"stage":"filtered", ... ,"sha256":"9f..."}

The store seals manifests and the records of parts; the loader compares them without another
package. Earlier versions wrote records with an indent of two spaces, and the first of them no seal:
such a record ends with an object, a sealed one with a text, so that no flipped bit makes one look
like the other.
"""

from __future__ import annotations

import hashlib
import re

END = b"}\n"
INDENTED_END = b"\n}\n"
SEAL = re.compile(rb',"sha256":"([0-9a-f]{64})"}\n\Z')
INDENTED_SEAL = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n\Z')
SEAL_BYTES = 96  # at most, with the end: a large manifest is not searched


def sealed(content: bytes) -> bytes:
    """Return the JSON of an object, on one line or indented, with its seal as the last key."""
    sha256 = hashlib.sha256(content).hexdigest()
    if content.endswith(INDENTED_END):
        seal = f',\n  "sha256": "{sha256}"'.encode()
        return content.removesuffix(INDENTED_END) + seal + INDENTED_END
    return content.removesuffix(END) + f',"sha256":"{sha256}"'.encode() + END


def unsealed(content: bytes) -> bytes:
    """Return the JSON without its seal; ValueError if the content is not what was sealed.

    A record that an earlier version wrote comes back as it is.
    """
    is_indented = content.endswith(INDENTED_END)
    end, seal = (INDENTED_END, INDENTED_SEAL) if is_indented else (END, SEAL)
    tail = content[-SEAL_BYTES:]
    found = seal.search(tail)
    if found is None:
        if content.endswith(b'"' + end):
            raise ValueError("its seal, the key sha256 at its end, is damaged")
        return content
    inside = content[: len(content) - len(tail) + found.start()] + end
    sha256 = hashlib.sha256(inside).hexdigest()
    if sha256 != found[1].decode():
        raise ValueError(f"its sha256 is {sha256}, its seal says {found[1].decode()}")
    return inside
