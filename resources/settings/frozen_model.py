"""The base of all models of pipeline.yaml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Keys of pipeline.yaml: they never change, and a key without a field is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
