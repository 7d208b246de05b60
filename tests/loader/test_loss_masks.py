"""Loss masks of conversations: from flat files to batches and to labels."""

from dataclasses import replace

from format_folders import about_of, peer, shard_of
from loader_corpus import Row, fingerprint, publish, write_phase
from prelude import Path, hashlib, json, np, pl, pytest

from assets.bucketed.sequences import sequence_ids
from assets.sharded.formats import FORMATS
from assets.sharded.formats.base import FormatError
from assets.sharded.formats.megatron import write_mask
from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.mixture import (
    FlatFile,
    Mixture,
    MixtureSource,
    Shard,
    check_version,
    mixture_json,
)

NO = -100
CHATS: list[Row] = [[[11, 12, 13], [21, 22, 23, 24]], [[31, 32, 33, 34, 35]]]
TEXTS: list[Row] = [[[41, 42, 43, 44, 45, 46]]]
LEARNED = {12, 13, 23, 33, 34}  # of the conversations


def add_masks(store: Path, source: str, learned: set[int]) -> Path:
    """Publish the mixture again, with masks of the shards of a source: a bit for each token."""
    mixture = json.loads((store / "mixed/general/mixture-1.json").read_text())
    for described in (each for each in mixture["sources"] if each["name"] == source):
        for shard in described["shards"]:
            tokens = np.fromfile(store / f"{shard['path']}.bin", "<u2")
            bits = np.packbits(np.isin(tokens, list(learned)), bitorder="little").tobytes()
            (store / f"{shard['path']}.loss").write_bytes(bits)
            sha256 = hashlib.sha256(bits).hexdigest()
            shard["files"]["loss"] = {"bytes": len(bits), "sha256": sha256}
    mixture["version"] = 4
    publish(store, mixture | {"fingerprint": fingerprint(mixture)}, 2)
    return store


def masked_store(store: Path, length: int | None = 8) -> Path:
    write_phase(store, {"chats": [CHATS], "texts": [TEXTS]}, sequence_length=length)
    return add_masks(store, "chats", LEARNED)


def loader_of(store: Path, **options: bool) -> CorpusLoader:
    return CorpusLoader(store, batch_size=1, options=LoaderOptions(**options))


def learned_rows(loader: CorpusLoader) -> dict[int, list[bool]]:
    """The mask of each row by its first token."""
    batch = loader.samples(range(loader.split.epoch_samples))
    assert batch.loss_mask is not None
    rows = zip(batch.tokens, batch.loss_mask, strict=True)
    return {int(row[0]): mask.tolist() for row, mask in rows}


@pytest.mark.parametrize("with_documents", [False, True])
def test_the_mask_is_that_of_the_file_and_of_texts_all_but_padding(
    tmp_path: Path, with_documents: bool
) -> None:
    loader = loader_of(masked_store(tmp_path), with_documents=with_documents)
    yes, no = True, False
    assert learned_rows(loader) == {
        11: [no, yes, yes, no, no, yes, no, no],
        31: [no, no, yes, yes, no, no, no, no],
        41: [yes, yes, yes, yes, yes, yes, no, no],
    }


def test_rows_of_different_lengths_are_masked_by_their_places(tmp_path: Path) -> None:
    loader = loader_of(masked_store(tmp_path, None))
    assert learned_rows(loader) == {  # rows of 7, 5 and 6 tokens
        11: [False, True, True, False, False, True, False],
        31: [False, False, True, True, False, False, False],
        41: [True] * 6 + [False],
    }


def test_documents_learn_what_the_mask_has_but_no_first_token(tmp_path: Path) -> None:
    loader = loader_of(
        add_masks(masked_store(tmp_path), "chats", {11, 12, 21}), with_documents=True
    )
    batch = loader.samples(range(3))
    assert batch.documents is not None
    learned = batch.tokens[batch.documents.loss_mask].tolist()
    assert sorted(learned) == [12, 42, 43, 44, 45, 46]


def test_batches_read_together_have_the_masks_of_their_rows(tmp_path: Path) -> None:
    learned = [
        batch.tokens[batch.loss_mask].tolist()  # type: ignore[index]
        for batch in loader_of(masked_store(tmp_path))
    ]
    assert sorted(learned) == [[12, 13, 23], [33, 34], [41, 42, 43, 44, 45, 46]]


def test_a_repeated_row_is_not_learned(tmp_path: Path) -> None:
    store, ranks = masked_store(tmp_path), 2
    options = LoaderOptions(drop_last=False, pad_last=True)
    for rank in range(ranks):
        for batch in CorpusLoader(
            store, rank=rank, world_size=ranks, batch_size=1, options=options
        ):
            assert batch.loss_mask is not None
            assert batch.loss_mask.any(axis=1).tolist() == (~batch.is_repeated).tolist()


def test_a_mixture_without_masks_gives_none(tmp_path: Path) -> None:
    loader = loader_of(write_phase(tmp_path, {"texts": [TEXTS]}))
    assert loader.samples([0]).loss_mask is None


def test_a_file_of_masks_that_ends_early_is_refused(tmp_path: Path) -> None:
    store = masked_store(tmp_path)
    mixture = json.loads((store / "mixed/general/mixture-2.json").read_text())
    [chats, _] = mixture["sources"]
    path = f"{chats['shards'][0]['path']}.loss"
    (store / path).write_bytes(b"\x01")
    sha256 = hashlib.sha256(b"\x01").hexdigest()
    chats["shards"][0]["files"]["loss"] = {"bytes": 1, "sha256": sha256}
    publish(store, mixture, 3)
    with pytest.raises(CorpusError, match=r"shard-00000\.loss is damaged: it has 8 flags"):
        loader_of(store).samples(range(3))


def test_labels_are_the_assistants_tokens(tmp_path: Path) -> None:
    peer("torch")
    from corpus_loader.torch_dataset import CorpusDataset
    from corpus_loader.trainers.forms import hugging_face, next_token

    for batch in CorpusDataset(loader_of(masked_store(tmp_path), with_documents=True)):
        if batch["tokens"][0, 0] == 11:
            shifted = next_token(batch)[1].tolist()
            assert hugging_face(batch)["labels"].tolist() == [[NO, 12, 13, NO, NO, 23, NO, NO]]
            assert shifted == [[12, 13, NO, NO, 23, NO, NO, NO]]


def test_masks_without_documents_do_not_pass_for_documents(tmp_path: Path) -> None:
    peer("torch")
    from corpus_loader.torch_dataset import CorpusDataset
    from corpus_loader.trainers.forms import hugging_face

    batch = next(iter(CorpusDataset(loader_of(masked_store(tmp_path)))))
    assert batch["loss_mask"].shape == (1, 8)
    with pytest.raises(CorpusError, match="with_documents=True"):
        hugging_face(batch)


def test_bits_are_counted_from_the_lowest(tmp_path: Path) -> None:
    """Shards that exist have this order: a change would teach other tokens."""
    flags = [[True, False, False, True], [False] * 4 + [True, True]]
    write_mask(tmp_path / "a.loss", pl.Series(flags))
    assert (tmp_path / "a.loss").read_bytes() == bytes([0b00001001, 0b00000011])


def test_masks_make_another_sequence_of_the_same_tokens() -> None:
    shard = shard_of([[1, 2, 3], [4, 5]])
    masked = [
        shard.with_columns(loss_mask=pl.Series(mask, dtype=pl.List(pl.Boolean)))
        for mask in ([[True, False, True], [True, True]], [[True, True, True], [True, True]])
    ]
    plain, one, other = (sequence_ids(each) for each in (shard, *masked))
    assert (one[0] != other[0]).any() and (one[1] == other[1]).all()
    assert (plain != one).any(axis=1).all()


def test_formats_without_a_place_for_masks_refuse_them() -> None:
    masked = replace(about_of(), has_loss_mask=True)
    found = {}
    for name, shard_format in FORMATS.items():
        try:
            found[name] = shard_format.suffixes_of(masked)
        except FormatError as error:
            assert f"{name} has no place for loss masks" in str(error)
    assert found == {"parquet": ("parquet",), "megatron": ("bin", "idx", "spans", "loss")}


def test_loaders_from_before_masks_refuse_the_mixture() -> None:
    files = {suffix: FlatFile(1, "0" * 64) for suffix in ("bin", "idx", "spans")}

    def version(source: MixtureSource) -> int:
        mixture = Mixture("main", 0, 1, 1, None, 8, "uint16", "0" * 64, 100, 0, "0" * 32, (source,))
        encoded = mixture_json(mixture)
        check_version(json.dumps(encoded).encode())
        return int(encoded["version"])

    assert version(MixtureSource("texts", 1, (Shard("a", 1, files),))) == 1
    masked = Shard("a", 1, files | {"loss": FlatFile(1, "0" * 64)})
    assert version(MixtureSource("chats", 1, (masked,))) == 4
    assert version(MixtureSource("chats", 0, (masked,))) == 1  # nothing is drawn from it
