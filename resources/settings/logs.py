"""`logging`: lines of JSON about runs, for programs that collect logs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LogLevel = Literal["debug", "info", "warning", "error"]


class LoggingConfig(BaseModel):
    """File of JSON lines about runs, beside Dagster's own records."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        default=None,
        min_length=1,
        description="file of JSON lines, a line per event of a run, relative to pipeline.yaml; "
        "null: none",
    )
    level: LogLevel = Field(
        default="info",
        description="least level of a line; debug: a line for every part, too",
    )
    max_bytes: int = Field(
        default=10 << 20,
        ge=1 << 12,
        description="bytes of a file, beyond which the next one is begun",
    )
    keep_files: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="full files that are kept beside the current one: path.1 is the newest",
    )
