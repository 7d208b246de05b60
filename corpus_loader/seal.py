"""Seal of a JSON record: a last key with the sha256 of all that comes before it.

    {
      "stage": "filtered",
      ...
      "sha256": "9f..."
    }

The store seals manifests and the records of parts; the loader compares them without another
package. Versions before this one wrote no seal: their records end with an object, a sealed one with
a text, so that no flipped bit makes one look like the other.
"""

from __future__ import annotations

import hashlib
import re

END = b"\n}\n"
SEAL = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n\Z')


def sealed(content: bytes) -> bytes:
    """Return the JSON of an object, indented by two spaces, with its seal as the last key."""
    sha256 = hashlib.sha256(content).hexdigest()
    return content.removesuffix(END) + f',\n  "sha256": "{sha256}"'.encode() + END


def unsealed(content: bytes) -> bytes:
    """Return the JSON without its seal; ValueError if the content is not what was sealed.

    A record that an earlier version wrote comes back as it is.
    """
    found = SEAL.search(content)
    if found is None:
        if content.endswith(b'"' + END):
            raise ValueError("its seal, the key sha256 at its end, is damaged")
        return content
    inside = content[: found.start()] + END
    sha256 = hashlib.sha256(inside).hexdigest()
    if sha256 != found[1].decode():
        raise ValueError(f"its sha256 is {sha256}, its seal says {found[1].decode()}")
    return inside
