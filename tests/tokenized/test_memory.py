"""A worker's memory on a million empty documents and two of 50 MB."""

import subprocess

from prelude import Path, np, os, pl, pytest, sys
from small_tokenizer import VOCAB_SIZE, trained

ROOT = Path(__file__).parents[2]
LIMIT_MB = 1500
WORK = """
import pipeline_defs  # has a worker's settings of the allocator
import sys
from pathlib import Path
from assets.deduped.document_files import KeptDocuments
from assets.tokenized.asset import EncodeInputs, encode_part
from assets.tokenized.encode_documents import TokenFormat
from resources.store.disk import xxh3_of
from resources.store.published import PublishedFile
from resources.tasks import Task


def published(path):
    return PublishedFile(path, path.stat().st_size, xxh3_of(path))


folder, vocab_size = Path(sys.argv[1]), int(sys.argv[2])
form = TokenFormat(vocab_size, 0)
documents = KeptDocuments(published(folder / "documents.parquet"), None)
inputs = EncodeInputs(documents, published(folder / "tokenizer.json"), form, True)
[record] = encode_part(Task(folder, "tokenized", "s", "part", "f" * 32, 1, inputs))
status = Path("/proc/self/status").read_text()
peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
print(record.stats.rows_in, record.stats.tokens, int(peak.split()[1]) // 1024)
"""


def random_digits(size: int, seed: int) -> str:
    points = np.random.default_rng(seed).integers(ord("0"), ord("9") + 1, size, np.uint8)
    return points.tobytes().decode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's peak memory")
def test_a_million_empty_documents_and_two_of_50_mb_fit(tmp_path: Path) -> None:
    texts = [*[""] * 1_000_000, *(random_digits(50_000_000, seed) for seed in (1, 2))]
    ids = (pl.int_range(len(texts), eager=True)).cast(pl.String).str.zfill(32)
    columns = {"doc_id": ids, "text": pl.Series(texts), "lang": pl.lit(None, pl.String)}
    pl.select(**columns).write_parquet(tmp_path / "documents.parquet")
    (tmp_path / "tokenizer.json").write_text(trained())

    command = [sys.executable, "-c", WORK, str(tmp_path), str(VOCAB_SIZE)]
    environment = os.environ | {"POLARS_MAX_THREADS": "1"}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    rows, tokens, peak_mb = map(int, ran.stdout.split())
    assert rows == 1_000_002 and 40_000_000 < tokens <= 100_000_002
    assert peak_mb < LIMIT_MB
