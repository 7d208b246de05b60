"""Validation: what is held out of training, read once by any ranks, of all sources or of one."""

from loader_corpus import held_out, numbered_rows, two_sources, write_phase
from prelude import Any, Counter, Path, pytest
from tables import cases

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.mixture import WITH_WEIGHTS_AT, Mixture, mixture_json, parse_mixture

HELD = {"books": [numbered_rows(501, 3), numbered_rows(504, 2)], "web": [numbered_rows(601, 9)]}
NUMBERS = [*range(501, 506), *range(601, 610)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A phase, and 14 rows that are held out of it."""
    return held_out(two_sources(tmp_path), HELD)


def validation(store: Path, *, rank: int = 0, world: int = 1, **rest: Any) -> CorpusLoader:
    given = {"batch_size": 4, "split": "validation"} | rest
    return CorpusLoader(store, rank=rank, world_size=world, **given)


def read(loader: CorpusLoader) -> list[int]:
    """The rows of an iteration by their numbers, without repeated ones."""
    return [int(row[0]) for batch in loader for row in batch.tokens[~batch.is_repeated]]


@pytest.mark.parametrize("world", [1, 2, 3, 5, 12, 16])
@pytest.mark.parametrize("is_padded", [False, True])
def test_ranks_read_each_row_once(store: Path, world: int, is_padded: bool) -> None:
    options = LoaderOptions(pad_last=is_padded)
    for source, expected in ((None, NUMBERS), ("books", NUMBERS[:5])):
        given = {"world": world, "options": options, "source": source}
        loaders = [validation(store, rank=rank, **given) for rank in range(world)]
        assert len({len(loader) for loader in loaders}) == 1
        assert loaders[0].sources == ([source] if source else ["books", "web"])
        assert sorted(number for loader in loaders for number in read(loader)) == expected


def test_every_epoch_is_the_first_one_again(store: Path) -> None:
    loader = validation(store)
    first = read(loader)
    assert sorted(first) == NUMBERS != first
    assert read(loader) == read(loader) == first == read(validation(store))
    loader.set_epoch(7)
    assert read(loader) == first
    begun = [next(iter(loader)).tokens.tolist() for _ in range(3)]  # each begins anew
    assert begun[0] == begun[1] == begun[2]
    assert read(loader) == first
    loader.load_state_dict(validation(store).state_at(len(NUMBERS)))  # of the end
    assert read(loader) == first
    again = loader.samples(range(len(NUMBERS), 2 * len(NUMBERS)))
    assert again.tokens[:, 0].tolist() == first


def test_training_reads_no_held_out_row(store: Path) -> None:
    loader = CorpusLoader(store, batch_size=1)
    assert not {*read(loader), *read(loader)} & {*NUMBERS}


def test_state_goes_on_inside_of_validation(store: Path) -> None:
    loader, whole = validation(store), read(validation(store))
    batches = iter(loader)
    seen = [int(row[0]) for row in next(batches).tokens]
    state = loader.state_dict()
    assert set(state) == {"version", "cursor", "seed", "data"}
    parts = [validation(store, rank=rank, world=2, batch_size=1) for rank in (0, 1)]
    for part in parts:
        part.load_state_dict(state)
    left = [read(part) for part in parts]
    assert Counter(seen + left[0] + left[1]) == Counter(whole)


def test_states_of_other_parts_are_refused(store: Path) -> None:
    every, books = validation(store), validation(store, source="books")
    general = CorpusLoader(store)
    with pytest.raises(CorpusError, match=r"of the source 'books'.*is None.*source='books'"):
        every.load_state_dict(books.state_dict())
    with pytest.raises(CorpusError, match=r"of the source None.*'books'"):
        books.load_state_dict(every.state_dict())
    with pytest.raises(CorpusError, match=r"phase 'validation': open .* split='validation'"):
        general.load_state_dict(every.state_dict())
    with pytest.raises(CorpusError, match=r"phase 'general': open .* phase='general'"):
        every.load_state_dict(general.state_dict())
    books.load_state_dict(books.state_dict())


@cases(r"""
    wrong | message
    {"split": "test"} | r"split is 'test'; it must be one of \('train', 'validation'\)"
    {"source": "books"} | source is 'books', which goes with split='validation'
    {"phase": "validation"} | held out of training. Open it with split='validation'
    {"split": "validation", "phase": "late"} | phase is 'late': validation is of the whole
    {"split": "validation", "seed": 1} | seed is 1: validation has one order
    {"split": "validation", "source": "wbe"}
    | 'wbe' is unknown; those with held-out documents are books, web
    {"split": "validation", "source": "notes"} | 'notes' has no held-out documents; those with
""")
def test_wrong_arguments(store: Path, wrong: dict[str, Any], message: str) -> None:
    (store / "sharded/notes").mkdir()
    with pytest.raises(CorpusError, match=message):
        CorpusLoader(store, **wrong)


def test_store_without_held_out_documents(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no documents are held out .* Set `holdout: \{share:"):
        validation(two_sources(tmp_path))
    ordinary = write_phase(tmp_path / "other", HELD, phase="validation")
    with pytest.raises(CorpusError, match="is a phase to train on here"):
        validation(ordinary)
    assert len(CorpusLoader(ordinary, phase="validation", batch_size=1)) == 14


def test_validation_without_documents(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no document is held out: the corpus is small"):
        validation(held_out(two_sources(tmp_path), {}))


def test_older_loaders_refuse_validation_and_training_says_nothing_of_it(store: Path) -> None:
    mixture = Mixture("general", 0, 0, 1, None, 8, "uint16", "f", 9, 0, "a" * 32, ())
    assert mixture_json(mixture)["version"] == 1
    assert "is_validation" not in mixture_json(mixture)
    mixture = parse_mixture((store / "mixed/validation/mixture-1.json").read_bytes())
    assert mixture_json(mixture)["version"] == WITH_WEIGHTS_AT == 6
    assert mixture_json(mixture)["is_validation"] is True
