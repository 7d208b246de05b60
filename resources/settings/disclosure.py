"""`disclosure`, and the facts of a source: what forms about training content have to be told.

What follows from the data, as languages, sizes and domains, has no key. No stage reads these keys:
they are in no fingerprint, and to correct one computes nothing again.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import ONE_OR_MORE, NonEmpty
from resources.settings.operations import is_web_address

Provenance = Literal["public", "licensed", "third_party", "crawl", "user", "synthetic", "other"]
DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


def check_date(date: str) -> str:
    """Return a date; ValueError if it is none."""
    if DATE.fullmatch(date):
        return date
    raise ValueError(f"{date!r} is no date. Write 2024, 2024-05 or 2024-05-31")


def check_period(period: tuple[str, str]) -> tuple[str, str]:
    """Return a period; ValueError if it ends before it begins."""
    known = min(map(len, period))  # of 2024-05 and 2024, the year
    if period[0][:known] <= period[1][:known]:
        return period
    raise ValueError(f"{period[1]} is before {period[0]}. Write [from, to]")


def check_link(link: str) -> str:
    """Return a link; ValueError if it is no http(s) URL."""
    if is_web_address(link):
        return link
    raise ValueError(f"{link!r} is no link. Write a URL with http:// or https:// and a host")


AS_TEXT = BeforeValidator(str, json_schema_input_type=str | int)  # YAML has dates and numbers
Date = Annotated[str, AS_TEXT, AfterValidator(check_date)]
Period = Annotated[tuple[Date, Date], AfterValidator(check_period)]
Link = Annotated[str, AfterValidator(check_link)]
Names = Annotated[tuple[NonEmpty, ...], ONE_OR_MORE]


def told(description: str, default: Any = None) -> Any:
    """Return a field that no stage reads; without a value, forms say that it is unknown."""
    return Field(default, exclude=True, description=description)


class SourceFacts(FrozenModel):
    """Facts about a source that no document tells."""

    provenance: Provenance | None = told(
        "where the source is from. public: a data set that anyone may get; licensed: by contract "
        "with the holders of rights; third_party: other data of others that is not public; crawl: "
        "fetched by you or for you; user: of users of your services; synthetic: made by a model "
        "for you; other"
    )
    owner: NonEmpty | None = told("who made the source, or holds the rights in it")
    link: Link | None = told("page about the source")
    collected: Period | None = told(
        "first and last date at which the source was collected: [2024-01, 2024-06]"
    )
    crawler: Names = told("names by which the crawlers call themselves (user agents)", ())
    generator: Names = told("models that made the texts, as name and version", ())
    purpose: NonEmpty | None = told("what the source is collected and used for")
    personal_data: bool | None = told("whether the source, as it came, has personal data")

    @model_validator(mode="after")
    def check_crawler(self) -> Self:
        """Refuse a crawler of a source that is not crawled."""
        if self.crawler and self.provenance not in (None, "crawl"):
            raise ValueError(
                f"crawler: the provenance is {self.provenance}, and only a crawl has one. Remove "
                "it, or write `provenance: crawl`"
            )
        return self


class DisclosureConfig(FrozenModel):
    """The provider and the model, for forms about the training content."""

    title: NonEmpty | None = told("name of the corpus as a data set")
    provider: NonEmpty | None = told("legal name of the provider")
    contact: NonEmpty | None = told("address for questions and requests of holders of rights")
    representative: NonEmpty | None = told(
        "name and contact of the authorised representative in the EU; `none` if none is needed"
    )
    model: Names = told("names of the models that are trained, with their versions", ())
    base_model: NonEmpty | None = told("model that is trained further; `none` for a new one")
    placed_on_market: Date | None = told("date at which the model was placed on the EU market")
    version: NonEmpty | None = told("version of the summary")
    updated: Date | None = told("date of this version: the store has no clock")
    link: Link | None = told("page where the summary, or the data set, and its versions are")
    license: NonEmpty | None = told("licence of the corpus as a data set, as an SPDX identifier")
    sme: bool = told("the provider is a small or medium-sized enterprise", False)
    code_of_practice: bool | None = told("signatory to the code of practice for such models")
    crawler_behaviour: NonEmpty | None = told(
        "how crawlers treat robots.txt, other protocols, captchas, paywalls and logins"
    )
    opt_out: NonEmpty | None = told(
        "measures by which reservations of rights are respected, beside what the filters show"
    )
    illegal_content: NonEmpty | None = told("measures against illegal content")
    bias: NonEmpty | None = told("measures by which biases of the data are found")
    first_used: Date | None = told("date at which the data was first used in development")
    ongoing: bool | None = told("whether the collection goes on")
    consumer_information: bool | None = told(
        "whether the data includes aggregate consumer information (California)"
    )
    comments: NonEmpty = told("anything else that readers should know", "none")
