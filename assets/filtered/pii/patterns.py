"""Where personal data may be, and what decides whether it is: patterns and validators per kind.

A `Scan` is two steps. The Rust pattern finds candidates fast and knows nothing of what stands
around them; the check looks at one candidate in its text, and answers with the spans that count.
Trade-off: no pattern has look-around, so the place of a match is found again with `str.find`
(Polars gives matches without places), and every check reads a bounded stretch of text.
"""

from assets.filtered.pii import addresses as pii_addresses
from assets.filtered.pii import identity_numbers as pii_numbers
from assets.filtered.pii import phones as pii_phones
from assets.filtered.pii import secret_keys as pii_secrets
from assets.filtered.pii.scan import Scan

SCANS: tuple[Scan, ...] = (
    *pii_addresses.SCANS,
    *pii_phones.SCANS,
    *pii_numbers.SCANS,
    *pii_secrets.SCANS,
)
