"""Documents filled up to a multiple: in all stages, and read by ranks of context parallelism."""

import subprocess
import sys
from itertools import accumulate

from builders import Build, open_corpus
from chat_corpus import answers, write_chat_corpus
from format_folders import peer
from prelude import Any, Path, np, pairwise, pl, pytest
from verbs import Cli

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.flat import MappedFile, read_spans

MULTIPLE = 8  # of 2 and 4 ranks
JOB = Path(__file__).parents[1] / "context_parallel_job.py"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Path:
    """The folder of a built corpus with texts and conversations, whose phase is written as well."""
    config = write_chat_corpus(
        tmp_path_factory.mktemp("padded"),
        buckets={"mode": "pack", "sequence_length": 512, "pad_documents_to": MULTIPLE},
        shards={"formats": ["megatron", "parquet"]},
        phases=[
            {
                "name": "main",
                "weights": {"prose": 0.4, "asked": 0.3, "told": 0.3},
                "formats": ["megatron", "parquet"],
            }
        ],
    )
    corpus = open_corpus(config)
    build(corpus)
    build(corpus, "mixed")
    return config.parent


def every_document(built: Path) -> dict[str, list[int]]:
    """The tokens of each tokenized document."""
    paths = [*(built / "store/tokenized").glob("*/*.tokens.arrow")]
    tables = [pl.read_ipc(path).select("doc_id", "tokens") for path in paths]
    return dict(pl.concat(tables).iter_rows())


@pytest.mark.parametrize("folder", ["sharded/*", "mixed/main"])
def test_each_row_of_parquet_has_its_documents_at_multiples(built: Path, folder: str) -> None:
    tokens, end = every_document(built), 0
    rows = pl.read_parquet(
        built / f"store/{folder}/parquet-*/*.parquet", columns=["tokens", "spans"]
    )
    assert rows["spans"].list.len().max() > 2
    padding = []
    for row in rows.iter_rows(named=True):
        edges = accumulate((span["padded_length"] for span in row["spans"]), initial=0)
        for span, at in zip(row["spans"], edges, strict=False):
            stop, start = at + span["length"], span["start"]
            expected = tokens[span["doc_id"]][start : start + span["length"]]
            assert row["tokens"][at:stop] == expected
            padding += row["tokens"][stop : at + span["padded_length"]]
            assert span["padded_length"] == -(-span["length"] // MULTIPLE) * MULTIPLE
            end = at + span["padded_length"]
        padding += row["tokens"][end:]
    assert len(padding) > 100 and len({*padding}) == 1


def test_batches_say_where_documents_end(built: Path) -> None:
    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(built / "store", "main", batch_size=3, options=options)
    tokens = every_document(built)
    learned = 0
    for batch in loader:
        documents = batch.documents
        assert documents is not None
        assert not (np.diff(documents.cu_seqlens) % MULTIPLE).any()
        flat, mask = batch.tokens.reshape(-1), documents.loss_mask.reshape(-1)
        num_tokens = np.diff(documents.cu_seqlens_unpadded)
        edges = pairwise(documents.cu_seqlens.tolist())
        for number, (first, stop) in enumerate(edges):
            end = first + num_tokens[number]
            assert not mask[end:stop].any() and not mask[first]
            if num_tokens[number]:
                start = int(documents.starts[number])
                document = tokens[bytes(documents.doc_ids[number]).hex()]
                assert flat[first:end].tolist() == document[start : start + end - first]
        assert documents.num_tokens.sum() == num_tokens.sum()
        learned += mask.sum()
        for one in (batch.rows(0, 1, 0), batch.rows(1, 2, 0)):
            assert one.documents is not None
            assert one.documents.cu_seqlens_unpadded[-1] == one.documents.num_tokens.sum()
    assert learned > 1000


def test_padding_is_not_learned_without_documents_either(built: Path) -> None:
    [whole, plain] = (
        CorpusLoader(
            built / "store", "main", options=LoaderOptions(with_documents=is_wanted)
        ).samples(range(20))
        for is_wanted in (True, False)
    )
    assert whole.documents is not None and plain.loss_mask is not None
    edges = pairwise(whole.documents.cu_seqlens.tolist())
    for (first, stop), count in zip(
        edges, np.diff(whole.documents.cu_seqlens_unpadded).tolist(), strict=True
    ):
        of_document = plain.loss_mask.reshape(-1)[first:stop]
        assert not of_document[count:].any()
    assert plain.loss_mask.sum() > whole.documents.loss_mask.sum()  # the first tokens of texts


def test_all_answers_are_learned(built: Path) -> None:
    rows = pl.read_parquet(built / "store/sharded/told/parquet-*/*.parquet")
    flags = rows["loss_mask"].list.sum().sum()
    masks = [*(built / "store/tokenized/told").glob("*.tokens.arrow")]
    counted = pl.concat([pl.read_ipc(p).select("loss_mask") for p in masks])
    assert flags == counted["loss_mask"].list.sum().sum() > sum(map(len, map(answers, range(24))))


def test_written_phases_have_the_spans_of_their_sources(built: Path) -> None:
    for path in (built / "store/mixed/main").glob("megatron-*/*.spans"):
        rows = int.from_bytes(path.read_bytes()[8:16], "little")
        spans = read_spans(MappedFile(path, path.stat().st_size), rows).spans
        assert spans.padded is not None
        assert (spans.padded == -(-spans.lengths.astype(np.int64) // MULTIPLE) * MULTIPLE).all()


def test_trace_points_at_documents_behind_padding(
    built: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(built / "pipeline.yaml"))
    found = cli.json("trace", "--phase", "main", "--sample", "0", "--token", str(MULTIPLE))
    tokens, documents = every_document(built), found["documents"]
    places = accumulate(
        (-(-each["tokens"] // MULTIPLE) * MULTIPLE for each in documents), initial=0
    )
    for document, place in zip(documents, places, strict=False):
        assert document["position"] == place
        assert document["text"]
    assert found["num_tokens"] == sum(each["tokens"] for each in documents)
    assert tokens[documents[0]["doc_id"]][MULTIPLE] == found["token"]["id"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_no_rank_sees_another_document(built: Path, tmp_path: Path, ranks: int) -> None:
    peer("torch")
    job = [sys.executable, str(JOB), str(built / "store"), str(tmp_path / "rendezvous")]
    started = [
        subprocess.Popen(
            [*job, str(rank), str(ranks)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(ranks)
    ]
    for process in started:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-2000:]
        assert int(out) > 1000


def test_documents_that_ranks_cannot_cut_are_refused(built: Path) -> None:
    peer("torch")
    from corpus_loader import CorpusError
    from corpus_loader.torch_dataset import CorpusDataset
    from corpus_loader.trainers.forms import context_parallel

    options = LoaderOptions(with_documents=True)
    batch: Any = next(iter(CorpusDataset(CorpusLoader(built / "store", "main", options=options))))
    parts = [context_parallel(batch, rank, 4) for rank in range(4)]
    assert {part["tokens"].shape[1] for part in parts} == {batch["tokens"].numel() // 4}
    assert parts[0]["qkv_format"] == "thd"
    with pytest.raises(CorpusError, match="Set buckets.pad_documents_to to 32"):
        context_parallel(batch, 0, 16)
    with pytest.raises(CorpusError, match="rank is 4; it must be from 0 to 3"):
        context_parallel(batch, 4, 4)
