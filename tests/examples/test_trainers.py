"""Training frameworks over a corpus: killed, resumed with other ranks, every sample once."""

import subprocess

from format_folders import peer
from loader_corpus import every_sample, held_out, numbered_rows, write_phase
from prelude import Any, Path, json, os, pytest, sys

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "tests/trainer_job.py"
EXAMPLES = {
    "train_hugging_face.py": "transformers",
    "train_lightning.py": "lightning",
    "train_accelerate.py": "accelerate",
    "train_mesh.py": "torch",
}
BATCH, ACCUMULATE = 2, 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 rows, each of whose tokens is the row's number."""
    shards = [numbered_rows(1, 50), numbered_rows(51, 40)]
    return write_phase(tmp_path_factory.mktemp("corpus"), {"books": shards})


def train(example: str, ranks: int, steps: int, out: Path, store: Path, kill: int = 0) -> int:
    """Run an example in so many processes; return its exit code."""
    job = [str(JOB), example, str(out / f"seen-{ranks}"), str(kill), str(store)]
    job += ["--steps", str(steps), "--out", str(out / "checkpoints")]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(out / f"log-{ranks}", "w") as log:
        return subprocess.run(
            [*command, f"--nproc-per-node={ranks}", *job],
            env=os.environ | environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=240,
        ).returncode


def seen(out: Path, ranks: int, batches: int) -> list[int]:
    """The rows of the first batches of a run, step by step, as all ranks had them."""
    of_rank = [(out / f"seen-{ranks}.{rank}").read_text().splitlines() for rank in range(ranks)]
    rows = [[json.loads(line) for line in lines[:batches]] for lines in of_rank]
    return [row for step in zip(*rows, strict=True) for batch in step for row in batch]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_killed_training_goes_on_with_other_ranks_and_sees_every_sample_once(
    example: str, store: Path, tmp_path: Path
) -> None:
    peer(EXAMPLES[example])
    killed_in = 3 * ACCUMULATE + 1  # in the fourth step, after three whole ones
    assert train(example, 2, 8, tmp_path, store, kill=killed_in) != 0
    assert train(example, 1, 8, tmp_path, store) == 0, (tmp_path / "log-1").read_text()[-3000:]

    order = [int(row[0]) for batch in every_sample(store) for row in batch.tokens]
    before = seen(tmp_path, 2, 3 * ACCUMULATE)
    after = seen(tmp_path, 1, 5 * ACCUMULATE)
    assert before + after == order[: 3 * 2 * BATCH * ACCUMULATE + 5 * BATCH * ACCUMULATE]
    assert len((tmp_path / "seen-1.0").read_text().splitlines()) == 5 * ACCUMULATE


def test_the_trainer_prints_the_loss_on_what_is_held_out_by_source(
    store: Path, tmp_path: Path
) -> None:
    peer("transformers")
    held_out(store, {"notes": [numbered_rows(91, 3)]})
    command = [sys.executable, str(ROOT / "examples/train_hugging_face.py"), str(store)]
    options = ["--steps", "2", "--validate-every", "2", "--out", str(tmp_path / "checkpoints")]
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *options], env=os.environ | environment, capture_output=True, timeout=240
    )

    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert done.stdout.count(b"'eval_notes_loss'") == 1


def checkpoint(out: Path, step: int, *files: str) -> None:
    """A checkpoint's folder with some of its files."""
    folder = out / f"checkpoint-{step}"
    folder.mkdir()
    for name in files:
        (folder / name).write_text("{}")


def test_a_folder_of_a_killed_save_is_no_checkpoint(tmp_path: Path) -> None:
    peer("transformers")
    from corpus_loader import CorpusError
    from corpus_loader.trainers.hugging_face_trainer import newest_checkpoint

    assert newest_checkpoint(tmp_path / "none") is newest_checkpoint(tmp_path) is None
    checkpoint(tmp_path, 9, "model.safetensors")
    assert newest_checkpoint(tmp_path) is None
    checkpoint(tmp_path, 8, "model.safetensors", "corpus_loader.json")
    checkpoint(tmp_path, 10, "trainer_state.json")
    assert newest_checkpoint(tmp_path) == str(tmp_path / "checkpoint-8")
    (tmp_path / "checkpoint-8/corpus_loader.json").write_text("{")
    with pytest.raises(CorpusError, match="checkpoint-10 has all else"):
        newest_checkpoint(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_the_only_checkpoint_that_is_kept_is_whole(store: Path, tmp_path: Path) -> None:
    transformers = peer("transformers")
    from trainer_validation_job import small_model

    from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer, newest_checkpoint

    def trainer(steps: int, batch_size: int = BATCH) -> Any:
        args = transformers.TrainingArguments(
            str(tmp_path), max_steps=steps, save_steps=1, save_total_limit=1, use_cpu=True,
            per_device_train_batch_size=batch_size, report_to=[], disable_tqdm=True,
        )  # fmt: skip
        options = LoaderOptions(with_documents=True)
        loader = CorpusLoader(store, batch_size=BATCH, options=options)
        return CorpusTrainer(small_model(), args, corpus=CorpusDataLoader(CorpusDataset(loader)))

    trainer(2).train()
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]
    assert newest_checkpoint(tmp_path) == str(tmp_path / "checkpoint-2")
    again = trainer(3)
    again.train(resume_from_checkpoint=True)
    assert again.corpus.state_dict()["cursor"] == 3 * BATCH
    with pytest.raises(CorpusError, match="batch_size=2, the training arguments say 3"):
        trainer(2, batch_size=3)


@pytest.mark.filterwarnings("ignore")
def test_a_save_inside_an_accumulation_loses_no_batch(store: Path, tmp_path: Path) -> None:
    lightning, torch = peer("lightning.pytorch"), peer("torch")
    from corpus_loader import CorpusLoader
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.lightning_callback import LightningBatches

    class Model(lightning.LightningModule):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.table, self.seen, self.most = torch.nn.Embedding(256, 4), list[int](), most

        def training_step(self, batch: Any, _: int) -> Any:
            if len(self.seen) == self.most:
                raise KeyError("killed")
            self.seen += batch["positions"].tolist()
            return self.table(batch["tokens"][:, :2]).mean()

        def on_train_batch_end(self, *_: Any) -> None:
            self.trainer.save_checkpoint(tmp_path / "last.ckpt")

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def train(most: int, path: Path | None) -> tuple[list[int], int]:
        loader = CorpusLoader(store, batch_size=1)
        batches, model = LightningBatches(CorpusDataLoader(CorpusDataset(loader))), Model(most)
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, max_steps=20,
            enable_model_summary=False, default_root_dir=tmp_path, accumulate_grad_batches=3,
            callbacks=[batches.callback()], enable_checkpointing=False,
        )  # fmt: skip
        with pytest.raises(KeyError):
            trainer.fit(model, batches, ckpt_path=path)
        return model.seen, trainer.global_step

    assert train(7, None) == ([*range(7)], 2)
    assert train(2, tmp_path / "last.ckpt") == ([6, 7], 2)
    assert train(4, tmp_path / "last.ckpt") == ([6, 7, 8, 9], 3)
    assert train(1, tmp_path / "last.ckpt") == ([9], 3)
