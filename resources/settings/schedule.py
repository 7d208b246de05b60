"""`schedule`: the nightly run."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ScheduleConfig(BaseModel):
    """The nightly run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cron: str = Field(
        default="0 2 * * *", description="times of build_corpus, as a cron expression"
    )
    timezone: str = Field(default="UTC", description="IANA time zone of the cron expression")
    enabled: bool = Field(default=False, description="turns the schedule on from the start")
