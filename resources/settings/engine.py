"""`engine`: how parts are computed."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class EngineConfig(BaseModel):
    """How parts are computed. The output is the same, byte for byte, whatever is chosen here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["auto", "in_process", "processes"] = Field(
        default="auto",
        description="threads of the step's process, worker processes, or by amount of work",
    )
    steps: Literal["in_process", "multiprocess"] = Field(
        default="in_process",
        description="where Dagster runs steps: in the run's process, or each in one of its own, "
        "which costs a run about 8 s and gives memory back after every step",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="parts computed at the same time; default: the CPU's cores",
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="how often a part is tried again after its worker process died",
    )

    def num_workers(self) -> int:
        """The configured number of workers, or the cores that this process may use."""
        return self.workers or len(os.sched_getaffinity(0))
