"""`engine`: computation of parts."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class EngineConfig(BaseModel):
    """Workers that compute parts; the output is the same, byte for byte, for every choice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["auto", "in_process", "processes"] = Field(
        default="auto",
        description="workers. in_process: threads of the step's process; processes: worker "
        "processes; auto: processes for 128 MiB of work or more",
    )
    steps: Literal["in_process", "multiprocess"] = Field(
        default="multiprocess",
        description="processes of Dagster's steps. multiprocess: one per step, which frees its "
        "memory when it ends; in_process: the run's",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="parts computed at the same time; null: the number of CPU cores",
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="further attempts at a part after its worker process died",
    )

    def num_workers(self) -> int:
        """Return the configured number of workers, or the cores that this process may use."""
        return self.workers or len(os.sched_getaffinity(0))
