"""`urls`: which URLs mean one page."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resources.settings.frozen_model import FrozenModel

# What mailings, advertisers and social networks add to the URLs of their links.
TRACKING_PARAMETERS = (
    *("utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "_ga", "_gl"),
    *("fbclid", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "igshid", "igsh"),
    *("mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id", "oly_anon_id", "oly_enc_id"),
)
ParameterName = Annotated[str, Field(pattern=r"^[^\s&=*A-Z]+\*?$")]


class UrlConfig(FrozenModel):
    """URLs that mean one page."""

    tracking_parameters: tuple[ParameterName, ...] = Field(
        default=TRACKING_PARAMETERS,
        description="parameters of URLs that make no other page of it, for takedowns and opt-outs; "
        "in lower case, and a name that ends in * means all that begin so",
    )
