"""`engine`: computation of parts."""

from __future__ import annotations

import os
from typing import Literal, Self

from pydantic import Field, model_validator

from resources.settings.frozen_model import FrozenModel


class RayConfig(FrozenModel):
    """The Ray cluster that computes parts with `engine.kind: ray`."""

    address: str | None = Field(
        default=None,
        min_length=1,
        description="a running cluster: HOST:PORT of its head, ray://HOST:PORT of its Ray Client "
        "server, or auto for that of this machine; null: one of this machine's cores, which is "
        "started for each step and ended with it",
    )
    code: Literal["installed", "sent"] = Field(
        default="installed",
        description="where workers get this package from. installed: every node has the same "
        "version of it; sent: the driver sends its own with each run, and nodes need the "
        "dependencies only",
    )
    task_bytes: int = Field(
        default=512 << 20,
        ge=64 << 20,
        description="memory that a part asks its node for, besides that for what it reads; a part "
        "waits where less is free",
    )
    connect_seconds: float = Field(
        default=120.0,
        gt=0,
        le=3600,
        description="time to connect to the cluster in, or to start one",
    )

    def is_same_cluster(self, other: RayConfig) -> bool:
        """Return whether a connection made for `other` serves for this."""
        return (self.address, self.code) == (other.address, other.code)


class EngineConfig(FrozenModel):
    """Workers that compute parts; the output is the same, byte for byte, for every choice."""

    kind: Literal["auto", "in_process", "processes", "ray"] = Field(
        default="auto",
        description="workers. in_process: threads of the run's process; processes: worker "
        "processes; ray: tasks of a Ray cluster, on all of its machines; auto: processes for "
        "much work, from 128 MiB on",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="parts computed at the same time; null: the number of CPU cores, with ray "
        "those of the cluster",
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="further attempts at a part after its worker process died, or its node",
    )
    ray: RayConfig = Field(default=RayConfig(), description="the cluster of kind: ray")
    steps: Literal["auto", "multiprocess", "in_process"] = Field(
        default="auto",
        description="processes of Dagster's steps. multiprocess: one for each step; one that the "
        "system kills is tried again, and its memory is free when it ends; in_process: the run's; "
        "auto: one for each step for much work, from 128 MiB on, with ray always the run's",
    )

    @model_validator(mode="after")
    def has_one_driver(self) -> Self:
        """Refuse steps in processes of their own with Ray: one driver serves a run."""
        if self.kind == "ray" and self.steps == "multiprocess":
            raise ValueError("steps: multiprocess: with kind: ray, steps run in the run's process")
        return self

    def num_workers(self) -> int:
        """Return the configured number of workers, or the cores that this process may use."""
        return self.workers or len(os.sched_getaffinity(0))
