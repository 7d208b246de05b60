"""A chat template that refuses many conversations fails their source alone, with its reason."""

import yaml
from builders import open_corpus
from chat_corpus import TOKENS, write_chat_corpus
from every_stage import run_stage
from prelude import Any, Path, pytest

from assets.bucketed.asset import STAGE as BUCKETED
from assets.stages import STAGES
from assets.tokenized.asset import STAGE as TOKENIZED
from assets.tokenized.chat_template_files import usable_tokenized
from resources.store.store import StoreError

PICKY = (
    "{% for m in messages %}{% if 'number 1' in m.content %}{{ raise_exception('no ones') }}"
    "{% endif %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% endfor %}"
)


def built(folder: Path, **source: Any) -> Any:
    """The corpus of conversations, encoded with a template that refuses a part of them."""
    tokenizer = {"vocab_size": 320, "special_tokens": TOKENS, "chat_template": PICKY}
    corpus = open_corpus(write_chat_corpus(folder, tokenizer=tokenizer))
    config = yaml.safe_load(corpus.config.read_text())
    config["sources"] = [config["sources"][1] | source]
    config["phases"] = [{"name": "main", "weights": {"asked": 1}}]
    corpus.config.write_text(yaml.safe_dump(config))
    corpus = open_corpus(corpus.config)
    for stage in STAGES[: STAGES.index(TOKENIZED) + 1]:
        if stage.is_used(corpus.settings):
            run_stage(corpus, stage)
    return corpus


def test_a_template_that_refuses_many_fails_its_source_with_the_reason(tmp_path: Path) -> None:
    said = r"refuses 11 of 24 conversations \(45.8%\), above 5.0%, most often since: no ones"
    with pytest.raises(StoreError, match=said):
        built(tmp_path)
    with pytest.raises(StoreError, match=said):
        BUCKETED.plan(open_corpus(tmp_path / "pipeline.yaml"), "asked")


def test_max_bad_share_accepts_more_refusals(tmp_path: Path) -> None:
    manifest = usable_tokenized(built(tmp_path, max_bad_share=0.5), "asked")
    assert manifest.stats.rejected == {"refused_by_template": 11}
