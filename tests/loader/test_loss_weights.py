"""Weights of the loss by source: in the mixture, on the loader, and in the training."""

from format_folders import peer
from loader_corpus import numbered_rows, write_phase
from prelude import Any, Path, json, np, pytest

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.mixture import VERSION, check_version, mixture_json, parse_mixture

ROWS = {"books": [numbered_rows(1, 4)], "web": [numbered_rows(101, 8)]}


def weighted(folder: Path, **weights: float) -> Path:
    """A phase of twelve rows whose sources have weights of the loss."""
    store = write_phase(folder, ROWS)
    path = store / "mixed/general/mixture-1.json"
    mixture = json.loads(path.read_text())
    for source in mixture["sources"]:
        if source["name"] in weights:
            source["loss_weight"] = weights[source["name"]]
    return write_phase(folder, ROWS, sources=mixture["sources"], version=VERSION)


def test_the_loader_says_the_weight_of_each_source(tmp_path: Path) -> None:
    loader = CorpusLoader(weighted(tmp_path, web=0.5), batch_size=12)
    [batch] = loader
    weights = loader.loss_weights[batch.sources]
    assert weights.dtype == np.float32
    assert weights.tolist() == [0.5 if row[0] > 100 else 1 for row in batch.tokens.tolist()]


def test_older_loaders_refuse_a_mixture_with_weights(tmp_path: Path) -> None:
    stores = (write_phase(tmp_path / "a", ROWS), weighted(tmp_path / "b", web=0.5))
    plain, content = ((store / "mixed/general/mixture-1.json").read_bytes() for store in stores)
    plain_mixture = mixture_json(parse_mixture(plain))
    encoded = mixture_json(parse_mixture(content))
    assert encoded["version"] == VERSION == 7
    assert [source.get("loss_weight") for source in encoded["sources"]] == [None, 0.5]
    assert "loss_weight" not in json.dumps(plain_mixture)
    assert plain_mixture["version"] == 1
    with pytest.raises(CorpusError, match="has version 8, this corpus_loader reads up to 7"):
        check_version(json.dumps(encoded | {"version": 8}).encode())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("weights", [{}, {"books": 3.0, "web": 0.25}])
def test_the_trainer_weighs_the_losses(
    tmp_path: Path, weights: dict[str, float], flat: bool
) -> None:
    torch, transformers = peer("torch"), peer("transformers")
    from trainer_validation_job import small_model

    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.forms import hugging_face, hugging_face_flat
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    store = weighted(tmp_path / "store", **weights)

    def corpus() -> Any:
        options = LoaderOptions(with_documents=True)
        return CorpusDataLoader(CorpusDataset(CorpusLoader(store, batch_size=3, options=options)))

    args = transformers.TrainingArguments(
        str(tmp_path / "out"), max_steps=1, gradient_accumulation_steps=2, learning_rate=1.0,
        optim="sgd", lr_scheduler_type="constant", max_grad_norm=0, use_cpu=True, report_to=[],
        per_device_train_batch_size=3, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    form = hugging_face_flat if flat else hugging_face
    trainer = CorpusTrainer(small_model(), args, corpus=corpus(), form=form)
    trainer.train()

    model, loss, count = small_model(), torch.zeros(()), 0
    batches = corpus()
    loader = batches.dataset.loader
    for batch, _ in zip(batches, range(2), strict=False):
        inputs = hugging_face(batch)
        labels = inputs.pop("labels")[:, 1:]
        logits = model(**inputs).logits[:, :-1].transpose(1, 2)
        losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none").sum(1)
        loss = loss + (losses * torch.from_numpy(loader.loss_weights)[batch["sources"]]).sum()
        count += int((labels >= 0).sum())
    (loss / count).backward()
    for name, parameter in model.named_parameters():
        stepped = parameter - parameter.grad
        assert torch.allclose(stepped, trainer.model.get_parameter(name), atol=1e-5), name


@pytest.mark.filterwarnings("ignore")
def test_a_loss_that_does_not_see_the_weights_is_refused(tmp_path: Path) -> None:
    peer("torch")
    transformers = peer("transformers")
    from trainer_validation_job import small_model

    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    store = weighted(tmp_path / "store", web=0.5)
    corpus = CorpusDataLoader(CorpusDataset(CorpusLoader(store, batch_size=8)))
    args = transformers.TrainingArguments(
        str(tmp_path / "out"), max_steps=1, use_cpu=True, report_to=[]
    )
    with pytest.raises(CorpusError, match="loss_weights, which compute_loss_func does not see"):
        CorpusTrainer(
            small_model(), args, corpus=corpus, compute_loss_func=lambda *given, **named: None
        )
