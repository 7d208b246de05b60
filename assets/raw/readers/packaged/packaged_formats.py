"""Formats that the package `datasets` reads for us, and what it is asked for.

Left out of what it knows: images, audio, PDF and structures, which have no text; Lance, which it
reads at the branch `main` only, whatever commit is asked for; logs of Inspect, CoNLL and Harbor,
which it reads as Python rows or lists of words; scripts and pickles, which would run code.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from resources.errors import InputError

PACKAGE = "datasets"
EXTRA = "hub-datasets"
ROWS = 128  # of a table: states lie between tables, and so do the borders of parts
TABLE_BYTES = 16 << 20
BOUNDS = {"batch_size": ROWS, "max_batch_bytes": TABLE_BYTES}
SEQUENCE = ["id", "description", "sequence"]
GENBANK = ["locus_name", "accession", "version", "definition", "organism", "taxonomy", "keywords"]
GENBANK += ["sequence", "features", "length", "molecule_type", "secondary_accessions", "contig"]


class Builder(NamedTuple):
    """A builder of the package, by name, its options, and the packages that it needs."""

    endings: tuple[str, ...]
    name: str
    options: Mapping[str, object]
    packages: tuple[str, ...] = (PACKAGE,)


BUILDERS = {
    "fasta": Builder(
        (".fa", ".fasta", ".fna", ".ffn", ".faa", ".frn", ".afa"),
        "fasta",
        {**BOUNDS, "columns": SEQUENCE},
    ),
    "fastq": Builder((".fq", ".fastq"), "fastq", {**BOUNDS, "columns": [*SEQUENCE, "quality"]}),
    "genbank": Builder((".gb", ".gbk", ".genbank"), "genbank", {**BOUNDS, "columns": GENBANK}),
    "hdf5": Builder((".h5", ".hdf5"), "hdf5", {"batch_size": ROWS}, (PACKAGE, "h5py")),
    # Its builder `xml` gives the text of a file too, but opens none: huggingface/datasets#8584.
    "xml": Builder((".xml",), "text", {"sample_by": "document"}),
}


def check_installed(file_format: str, name: str) -> None:
    """Raise InputError, which says what to install, if a format cannot be read here."""
    missing = [package for package in BUILDERS[file_format].packages if not find_spec(package)]
    if missing:
        raise InputError(
            f"{name!r} is read by the package `{' and '.join(missing)}`, which is not installed. "
            f"Run: pip install 'tokenmill[{EXTRA}]'"
        )


def package_version() -> str:
    """Return the version of the package, on which rows and states depend; "" without it."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return ""
