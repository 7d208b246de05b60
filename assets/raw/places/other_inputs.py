"""Files that are read as those of a source, and are of none: evaluation sets, annotators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assets.raw.places.find_inputs import MAY_BE_EMPTY, find_inputs
from assets.raw.readers.input_file import InputFile
from resources.errors import InputError
from resources.settings.sources import InputPlaces, SourceConfig


def as_source(places: InputPlaces, text_field: str, **keys: Any) -> SourceConfig:
    """Return places as a source with some keys; no other field is its language or licence."""
    return SourceConfig.model_validate(
        {
            **{name: getattr(places, name) for name in InputPlaces.model_fields},
            **dict.fromkeys(("text_field", "lang_field", "license_field"), text_field),
            **keys,
        }
    )


def find_files(source: SourceConfig, noun: str, base: Path, downloads: Path) -> list[InputFile]:
    """Find the files of what is read as a source; paths start at the folder `base`.

    `noun` has the section of pipeline.yaml before it: "annotations: annotator". Raises InputError,
    which says it instead of "source", for a pattern without a file.
    """
    try:
        return find_inputs(source, base, downloads).files
    except InputError as error:
        section, _, name = noun.partition(": ")
        message = str(error).removesuffix(MAY_BE_EMPTY).replace("source", name, 1)
        raise InputError(f"{section}: {message}", source.identity_query) from error
