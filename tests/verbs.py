"""Verbs of `corpus` in this process, and what they print."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from pipeline_defs.commands.main import main


@dataclass(frozen=True)
class Cli:
    """Runs verbs; what was printed before is dropped."""

    capture: pytest.CaptureFixture[str]

    def out(self, *words: str, code: int = 0) -> str:
        """Return the output of a verb that ends with a code."""
        return self.printed(words, code).out

    def json(self, *words: str) -> Any:
        """Return what a verb prints as JSON."""
        return json.loads(self.out(*words, "--json"))

    def err(self, code: int, *words: str) -> str:
        """Return the errors of a verb that ends with a code."""
        return self.printed(words, code).err

    def printed(self, words: tuple[str, ...], code: int) -> Any:
        """Return output and errors of a verb that ends with a code."""
        self.capture.readouterr()
        with patch.dict(os.environ):  # what a verb sets, its process takes along
            found = main(words)
        printed = self.capture.readouterr()
        assert found == code, printed
        return printed
