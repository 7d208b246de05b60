"""Scans of all kinds of personal data.

A `Scan` has two steps. A Rust pattern finds candidates fast, without their context; a check reads
one candidate in its text and yields the spans that count.
Trade-off: no pattern has look-around, since Polars returns matches without places and a kernel
finds them again. Every check reads a bounded part of the text.
"""

from assets.filtered.pii import (
    email_addresses,
    identity_numbers,
    ip_addresses,
    passwords,
    phones,
    secret_keys,
    spaced_phones,
    url_secrets,
)
from assets.filtered.pii.scan import Scan

SCANS: tuple[Scan, ...] = (
    *email_addresses.SCANS,
    *ip_addresses.SCANS,
    *phones.SCANS,
    *spaced_phones.SCANS,
    *identity_numbers.SCANS,
    *url_secrets.SCANS,
    *passwords.SCANS,
    *secret_keys.SCANS,
)
