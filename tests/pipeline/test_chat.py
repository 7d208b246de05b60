"""Conversations through all stages: the answers of assistants are learned, and nothing else."""

import shutil
from collections import Counter, defaultdict

import yaml
from builders import Build, hashes, open_corpus, write_jsonl
from chat_corpus import answers, openai, write_chat_corpus
from command_line import start
from prelude import Any, Callable, Path, np, pl, pytest, re
from tokenizers import Tokenizer

from assets.sharded.asset import STAGE as SHARDED
from assets.tokenized.chat_template_files import CHATML
from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.mixture import MASK_SUFFIX
from pipeline_defs.commands.main import main
from resources.settings.full_source import Source

END = "<|im_end|>"
Again = Callable[[Path], None]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a corpus with conversations, after `corpus build`."""
    config = write_chat_corpus(tmp_path_factory.mktemp("chat"))
    command = start(config, "pipeline_defs.commands.main", "build")
    assert command.wait() == 0, (config.parent / "out.log").read_text()[-3000:]
    return config.parent


@pytest.fixture(scope="module")
def again(build: Build) -> Callable[[Path], None]:
    """Builds the corpus of a config in this process."""

    def run(config: Path) -> None:
        corpus = open_corpus(config)
        build(corpus)
        build(corpus, "mixed")

    return run


def copied(built: Path, folder: Path, **changes: Any) -> Path:
    """A copy of the built corpus whose config has `changes`; return the config."""
    shutil.copytree(built, folder, dirs_exist_ok=True)
    config = folder / "pipeline.yaml"
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | changes))
    return config


def tokenizer_of(folder: Path) -> Tokenizer:
    [path] = (folder / "store/tokenizer/all").glob("*.tokenizer.json")
    return Tokenizer.from_file(str(path))


def batch_of(folder: Path, with_documents: bool = True) -> Any:
    options = LoaderOptions(with_documents=with_documents)
    loader = CorpusLoader(folder / "store", "main", options=options)
    return loader, loader.samples(range(loader.split.epoch_samples))


def learned_texts(folder: Path) -> dict[str, set[str]]:
    """What is learned of each document that is drawn, by source."""
    loader, batch = batch_of(folder)
    tokenizer, documents = tokenizer_of(folder), batch.documents
    tokens, mask = batch.tokens.reshape(-1), batch.loss_mask.reshape(-1)
    texts = defaultdict(set)
    row_of = documents.cu_seqlens[:-1] // batch.tokens.shape[1]
    for number, row in enumerate(row_of.tolist()):
        piece = slice(*documents.cu_seqlens[number : number + 2].tolist())
        if documents.doc_ids[number].any():
            ids = tokens[piece][mask[piece]].tolist()
            text = tokenizer.decode(ids, skip_special_tokens=False)
            texts[loader.sources[batch.sources[row]]].add(text)
        else:
            assert not mask[piece].any()  # padding
    return texts


def answers_of(numbers: range) -> set[str]:
    return {"".join(answer + END for answer in answers(number)) for number in numbers}


def test_the_learned_tokens_are_the_answers(built: Path) -> None:
    texts = learned_texts(built)
    asked, told = texts["asked"], texts["told"]
    assert asked <= answers_of(range(24)) and told <= answers_of(range(24, 48))
    assert len(asked) > 12 and len(told) > 12
    assert all(text.endswith("<|endoftext|>") for text in texts["prose"])


def test_every_conversation_has_its_answers_in_the_shards(built: Path) -> None:
    tokenizer = tokenizer_of(built)
    frame = pl.read_parquet(built / "store/sharded/told/parquet-*/*.parquet")
    learned = frame.select("tokens", "loss_mask").explode("tokens", "loss_mask").filter("loss_mask")
    text = tokenizer.decode(learned["tokens"].to_list(), skip_special_tokens=False)
    for number in range(24, 48):
        assert all(text.count(answer + END) == 1 for answer in answers(number))
    assert text.count(END) == sum(len(answers(number)) for number in range(24, 48))


def test_parquet_and_flat_files_have_the_same_masks(built: Path) -> None:
    root = built / "store/sharded/asked"
    for path in sorted(root.glob("parquet-*/*.parquet")):
        flags = pl.read_parquet(path)["loss_mask"].explode().to_numpy()
        [flat] = root.glob(f"megatron-*/{path.stem}.{MASK_SUFFIX}")
        bits = np.unpackbits(np.fromfile(flat, np.uint8), bitorder="little")
        assert bits[: flags.size].tolist() == flags.tolist() and not bits[flags.size :].any()


def test_bad_conversations_go_to_quarantine(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(built / "pipeline.yaml"))
    assert main(["quarantine", "show", "asked"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "chat role 'judge' is none of system, user" in said
    assert "chat has no assistant's message" in said
    assert "3 of 3 records in quarantine" in said


def test_a_second_build_writes_nothing(built: Path, tmp_path: Path, again: Again) -> None:
    config = copied(built, tmp_path)
    before = hashes(tmp_path / "store/sharded")
    again(config)
    assert hashes(tmp_path / "store/sharded") == before


def test_a_loader_goes_on_with_the_same_masks(built: Path) -> None:
    def loader() -> CorpusLoader:
        return CorpusLoader(built / "store", "main", batch_size=3)

    whole = [batch.loss_mask.tolist() for batch in loader()]  # type: ignore[union-attr]
    first = loader()
    batches = iter(first)
    head = [next(batches).loss_mask.tolist() for _ in range(2)]  # type: ignore[union-attr]
    rest = loader()
    rest.load_state_dict(first.state_dict())
    assert head + [batch.loss_mask.tolist() for batch in rest] == whole  # type: ignore[union-attr]


def test_corrected_answers_with_as_many_tokens_replace_the_old_ones(
    built: Path, tmp_path: Path, again: Again
) -> None:
    def corrected(text: str) -> str:
        """Let two words of every answer change places."""
        return re.sub(r"(answer \S+) (\S+) (\S+) (\S+)", r"\1 \4 \3 \2", text)

    shards = yaml.safe_load((built / "pipeline.yaml").read_text())["shards"]
    config = copied(built, tmp_path, shards=shards | {"rewrite_share": 1})  # rows are kept if alike
    path = tmp_path / "input/told/t.jsonl"
    path.write_text(corrected(path.read_text()))

    again(config)

    said = learned_texts(tmp_path)["told"]
    assert said and said <= {corrected(answer) for answer in answers_of(range(24, 48))}


def test_a_source_without_a_usable_conversation_stops_no_other(
    tmp_path: Path, again: Again
) -> None:
    config = write_chat_corpus(tmp_path)
    told = tmp_path / "input/told/t.jsonl"
    told.write_text(told.read_text().replace('"human"', '"judge"'))
    content = yaml.safe_load(config.read_text())
    content["sources"][2]["max_bad_share"] = 1.0
    content["phases"] = [{"name": "main", "weights": {"prose": 0.5, "asked": 0.5}}]
    config.write_text(yaml.safe_dump(content))

    again(config)

    assert learned_texts(tmp_path)["asked"]


def test_a_conversation_that_goes_is_learned_no_more(tmp_path: Path, again: Again) -> None:
    config = write_chat_corpus(tmp_path, buckets={"mode": "buckets", "edges": [128, 1024]})
    again(config)
    masks = mask_files(tmp_path)
    write_jsonl(tmp_path / "input/asked/a.jsonl", [openai(n) for n in range(23)])

    again(config)

    manifest = open_corpus(config).store.newest(SHARDED, "asked")
    assert manifest.stats.numbers.removed_rows
    assert mask_files(tmp_path) == masks  # the same files under their names
    assert len(list((tmp_path / "store/sharded/asked").glob("*/*.loss"))) == 2 * len(masks)
    texts = learned_texts(tmp_path)["asked"]
    assert texts and texts <= answers_of(range(23))


def mask_files(folder: Path) -> dict[str, str]:
    """Hashes of the masks of the first generation of the source `asked`."""
    shards = open_corpus(folder / "pipeline.yaml").store.newest(SHARDED, "asked").parts
    names = [f.path for part in shards for f in part.files if f.kind == f"megatron.{MASK_SUFFIX}"]
    found = hashes(folder / "store/sharded/asked")
    return {name: found[name] for name in names}


def test_another_template_with_the_same_tokens_writes_other_masks(
    built: Path, tmp_path: Path, again: Again
) -> None:
    """What is learned is no token: shards must not keep the masks of another template."""
    end = "{{- '<|im_end|>' }}{% endgeneration %}"
    without_end = "{% endgeneration %}{{ '<|im_end|>' }}"
    tokenizer = yaml.safe_load((built / "pipeline.yaml").read_text())["tokenizer"]
    template = CHATML.replace(end, without_end)
    assert template != CHATML
    again(copied(built, tmp_path, tokenizer=tokenizer | {"chat_template": template}))

    assert tokens_of(tmp_path) == tokens_of(built)
    texts = learned_texts(tmp_path)
    assert texts["asked"] <= {text.replace(END, "") for text in answers_of(range(24))}
    assert texts["asked"]


def tokens_of(folder: Path) -> list[list[int]]:
    """The tokens of all sequences of the newest shards of `asked`."""
    corpus = open_corpus(folder / "pipeline.yaml")
    manifest = corpus.store.newest(SHARDED, "asked")
    paths = [part.file("parquet.parquet") for part in manifest.parts]
    root = folder / "store/sharded/asked"
    frames = [pl.read_parquet(root / file.path, columns=["tokens"]) for file in paths if file]
    return sorted(pl.concat(frames)["tokens"].to_list())


def test_only_conversations_have_turns_to_split() -> None:
    with pytest.raises(ValueError, match="reasoning is for kind: chat"):
        Source.model_validate({"name": "a", "where": "a", "reasoning": "split_turns"})
    asked = {"name": "a", "where": "a", "kind": "chat", "reasoning": "split_turns"}
    with pytest.raises(ValueError, match="does not go with `learn: {roles"):
        Source.model_validate(asked | {"learn": {"roles": ["user"]}})


THINKING = (  # drops the reasoning before the last question, as Qwen3's does
    "{% set last = namespace(question=-1) %}{% for m in messages if m.role == 'user' %}"
    "{% set last.question = messages.index(m) %}{% endfor %}{% for m in messages %}"
    "<|im_start|>{{ m.role }}\n{% if m.reasoning and loop.index0 > last.question %}"
    "<think>{{ m.reasoning }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("learn", ["all", "weights"])
def test_turns_that_are_split_are_learned_once_with_their_reasoning(
    tmp_path: Path, again: Again, learn: str
) -> None:
    config = write_chat_corpus(tmp_path, buckets={"mode": "pack", "sequence_length": 2048})
    content = yaml.safe_load(config.read_text())
    content["sources"][1] |= {"reasoning": "split_turns", "learn": learn}
    content["tokenizer"]["chat_template"] = THINKING
    config.write_text(yaml.safe_dump(content))
    chats = [openai(number)["messages"] for number in range(24)]
    for message in (m for chat in chats for m in chat if m["role"] == "assistant"):
        message["reasoning"] = f"since {message['content']}"
        message |= {"weight": 0.5} if learn == "weights" else {}
    write_jsonl(tmp_path / "input/asked/a.jsonl", [{"messages": chat} for chat in chats])

    again(config)

    learned = learned_texts(tmp_path)["asked"]
    thought = {
        f"<think>since {answer}</think>{answer}{END}" for n in range(24) for answer in answers(n)
    }
    assert learned and learned <= thought
    rows = pl.read_parquet(tmp_path / "store/sharded/asked/parquet-*/*.parquet")
    flags = rows["loss_weight" if learn == "weights" else "loss_mask"].explode()
    assert set(flags.cast(pl.Int64).to_list()) == {0, 50 if learn == "weights" else 1}
    ids = rows["tokens"].explode().filter(flags.cast(pl.Boolean)).to_list()
    text = tokenizer_of(tmp_path).decode(ids, skip_special_tokens=False)
    assert sorted(text.split(END)[:-1]) == sorted(each.removesuffix(END) for each in thought)


def test_a_phase_in_shards_has_the_masks_of_its_samples(
    built: Path, tmp_path: Path, again: Again
) -> None:
    phases = yaml.safe_load((built / "pipeline.yaml").read_text())["phases"]
    phases[0]["formats"] = ["megatron", "parquet"]
    again(copied(built, tmp_path, phases=phases))
    _, batch = batch_of(tmp_path, with_documents=False)
    written = pl.read_parquet(tmp_path / "store/mixed/main/parquet-*/*.parquet")
    assert written["tokens"].to_list() == batch.tokens.tolist()
    assert written["loss_mask"].to_list() == batch.loss_mask.tolist()


def test_formats_without_masks_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_chat_corpus(tmp_path, shards={"formats": ["megatron", "mds"]})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    assert main(["build"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "mds has no place for loss masks, which source 'asked' (kind: chat) has" in said


def test_messages_count_by_their_weights(tmp_path: Path, again: Again) -> None:
    config = write_chat_corpus(tmp_path, shards={"formats": ["megatron", "parquet"]})
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["learn"] = "weights"
    content["phases"][0] |= {"loss_weights": {"asked": 2.0}}
    content["phases"].append(content["phases"][0] | {"name": "written", "formats": ["parquet"]})
    del content["phases"][1]["loss_weights"]
    config.write_text(yaml.safe_dump(content))
    records = [openai(number) for number in range(24)]
    for record in records:
        next(m for m in record["messages"] if m["role"] == "assistant")["weight"] = 0.07
    write_jsonl(tmp_path / "input/asked/a.jsonl", records)
    again(config)

    rows = pl.read_parquet(tmp_path / "store/sharded/asked/parquet-*/*.parquet")
    found = Counter(rows["loss_weight"].explode().to_list())
    assert set(found) == {0, 7, 100}
    [flat] = (tmp_path / "store/sharded/asked").glob("megatron-*/*.weights")
    assert Counter(flat.read_bytes()) == found
    loader, batch = batch_of(tmp_path)
    documents, tokenizer = batch.documents, tokenizer_of(tmp_path)
    texts = defaultdict(list)
    for row, source in enumerate(batch.sources.tolist()):
        for weight in {*batch.loss_weights[row].tolist()} - {0.0}:
            tokens = batch.tokens[row][batch.loss_weights[row] == weight].tolist()
            key = loader.sources[source], round(weight, 4)
            texts[key].append(tokenizer.decode(tokens, skip_special_tokens=False))
    assert set(texts) == {("prose", 1.0), ("asked", 0.14), ("asked", 2.0), ("told", 1.0)}
    firsts = "".join(texts["asked", 0.14])
    assert firsts.count(".0 ") == firsts.count(END) > 0 and ".1 " not in firsts
    assert ((batch.loss_weights > 0) == documents.loss_mask).all()

    written = pl.read_parquet(tmp_path / "store/mixed/written/parquet-*/*.parquet")
    assert set(written["loss_weight"].explode().to_list()) == {0, 7, 100}
    assert written.columns == ["num_tokens", "tokens", "loss_weight", "spans"]


def test_weights_that_a_source_does_not_want_are_refused(tmp_path: Path, again: Again) -> None:
    config = write_chat_corpus(tmp_path)
    records = [openai(number) for number in range(24)]
    records[5]["weight"] = 0.5
    write_jsonl(tmp_path / "input/asked/a.jsonl", records)
    again(config)
    paths = (tmp_path / "store/tokenized/asked").glob("*.rejected.parquet")
    [error] = pl.concat(map(pl.read_parquet, paths))["error"].to_list()
    assert "has the weight 0.5, which a source with `learn: weights` obeys" in error


def test_messages_of_the_roles_of_a_source_are_learned(
    built: Path, tmp_path: Path, again: Again
) -> None:
    config = copied(built, tmp_path)
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["learn"] = {"roles": ["user"]}
    content["sources"][2]["learn"] = "last"
    config.write_text(yaml.safe_dump(content))
    again(config)

    texts = learned_texts(tmp_path)
    asked = {text for text in texts["asked"] if text}
    assert all(text.count("what of number") == text.count(END) > 0 for text in asked)
    assert not any("answer" in text for text in asked)
    last = {answers(number)[-1] + END for number in range(24, 48)}
    assert {text for text in texts["told"] if text} <= last
