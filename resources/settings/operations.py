"""`schedule` and `notify`: runs that nobody watches."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from resources.settings.faults import PlacedError
from resources.settings.frozen_model import FrozenModel


class ScheduleConfig(FrozenModel):
    """The nightly run."""

    cron: str = Field(
        default="0 2 * * *", description="times of build_corpus, as a cron expression"
    )
    timezone: str = Field(default="UTC", description="IANA time zone of the cron expression")
    enabled: bool = Field(default=False, description="turns the schedule on from the start")


class NotifyConfig(FrozenModel):
    """Whom to tell of a run that failed, was canceled or left out a source."""

    webhook: SecretStr | None = Field(
        default=None,
        description="http(s) URL that gets the JSON by POST; it is never shown or logged. "
        "$TOKENMILL_WEBHOOK overrides it",
    )
    command: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="program and its arguments, without a shell; it gets the JSON on stdin and "
        "runs in the folder of pipeline.yaml",
    )
    ui: str | None = Field(
        default=None, description="address of the web UI, for links to runs: http://127.0.0.1:3000"
    )
    seconds: int = Field(
        default=10, ge=1, le=300, description="time limit of the webhook, and of the command"
    )

    @field_validator("webhook", "ui", mode="after")
    @classmethod
    def check_address(cls, value: SecretStr | str | None) -> SecretStr | str | None:
        """Refuse what is no http(s) URL, without repeating it: it may contain a secret."""
        url = value.get_secret_value() if isinstance(value, SecretStr) else value
        if url is not None and not is_web_address(url):
            raise PlacedError([((), "must be a URL with http:// or https:// and a host")])
        return value


def is_web_address(url: str) -> bool:
    """Return whether a text is an http(s) URL with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
