"""Evidence that candidates are compared by: the columns of `signatures` as arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.settings.dedup import DedupConfig

if TYPE_CHECKING:
    from assets.deduped.kernels.pair_similarity import Evidence

Shingles = tuple[NDArray[np.uint64], NDArray[np.int64]]
_HASH_BYTES = 16


def with_spans(members: pl.DataFrame, shingles: Shingles | None) -> pl.DataFrame:
    """Add the columns `start` and `stop`, Int64, of the members' shingles; 0 without shingles."""
    offsets = np.zeros(len(members) + 1, np.int64) if shingles is None else shingles[1]
    return members.with_columns(start=pl.Series(offsets[:-1]), stop=pl.Series(offsets[1:]))


def evidence_of(
    members: pl.DataFrame, config: DedupConfig, shingles: Shingles | None
) -> "Evidence":
    """Return the evidence by which the kernels compare n documents.

    `members` has group UInt64, text_hash and a field_00, field_01, ... for each of `config.fields`
    (Binary, 16 bytes or null), signature Array(UInt32) or null, and the columns of `with_spans`.
    Raises ValueError if hashes have another size, or if shingles are needed and not given.
    """
    from assets.deduped.kernels import pair_similarity as cluster_pairs

    if config.compares_shingles and shingles is None:
        raise ValueError("verify: exact compares shingles: pass those of the members")
    verify = {
        "none": cluster_pairs.NOT_VERIFIED,
        "signature": cluster_pairs.BY_SIGNATURE,
        "exact": cluster_pairs.BY_SHINGLES,
    }[config.verify]
    groups = members["group"].to_numpy()
    columns = ["text_hash", *(f"field_{number:02}" for number in range(len(config.fields)))]
    arrays = (
        np.stack([_first_of_equal(members[name], groups) for name in columns], axis=1),
        groups,
        _signature_values(members["signature"]),
        members["signature"].is_not_null().to_numpy(),
        np.empty(0, np.uint64) if shingles is None else shingles[0][:],
        np.stack([members["start"].to_numpy(), members["stop"].to_numpy()], axis=1),
    )
    for array in arrays:
        array.flags.writeable = False  # as the kernels are compiled for
    return cluster_pairs.Evidence(*arrays, verify, config.rows, config.threshold)


def _first_of_equal(hashes: pl.Series, groups: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the first row of the same group with an equal hash, uint32 [n]; its own for null."""
    from assets.deduped.kernels.document_rows import first_equal

    rows = np.flatnonzero(hashes.is_not_null().to_numpy())
    words = np.column_stack([_hash_words(hashes), groups])[rows]
    firsts = np.arange(len(hashes), dtype=np.uint32)
    firsts[rows] = rows[first_equal(np.ascontiguousarray(words.T))]
    return firsts


def _hash_words(hashes: pl.Series) -> NDArray[np.uint64]:
    """Return 128-bit hashes as two 64-bit words, uint64 [n, 2]; zeros for null."""
    sizes = hashes.bin.size()
    if not sizes.eq(_HASH_BYTES).all():
        others = sizes.drop_nulls().unique().sort().to_list()
        raise ValueError(
            f"{hashes.name} must have {_HASH_BYTES} bytes, found sizes={others}. "
            "Materialize `signatures` again."
        )
    array: Any = hashes.fill_null(bytes(_HASH_BYTES)).rechunk().to_arrow()
    if len(hashes) == 0:
        return np.empty((0, 2), np.uint64)
    words = np.frombuffer(array.buffers()[2], np.uint64).reshape(-1, 2)
    return words[array.offset : array.offset + len(hashes)]


def _signature_values(signatures: pl.Series) -> NDArray[np.uint32]:
    """Return signatures as uint32 [n, values], without a copy; anything for null."""
    width = getattr(signatures.dtype, "size", 0)
    if len(signatures) == 0 or width == 0 or signatures.is_null().all():
        return np.zeros((len(signatures), max(1, width)), np.uint32)
    array: Any = signatures.rechunk().to_arrow()
    values = array.values
    first = values.offset + array.offset * width
    held = np.frombuffer(values.buffers()[1], np.uint32)
    return held[first : first + len(signatures) * width].reshape(-1, width)
