"""A model that sees other documents of a packed row is refused, and the right form is named."""

from format_folders import peer
from loader_corpus import write_phase
from prelude import Any, Path, pytest

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions

SMALL = {
    "vocab_size": 99,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
HEADS = SMALL | {"num_key_value_heads": 2, "head_dim": 16}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
OLDER = {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2}
STATES = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8}
MODELS: dict[str, tuple[dict[str, Any], str]] = {  # the options of a config, and what keeps apart
    "Llama": (SMALL, "hugging_face"),
    "Qwen3": (HEADS, "hugging_face"),
    "Gemma3Text": (HEADS, "hugging_face"),
    "Mixtral": (SMALL | EXPERTS | {"num_key_value_heads": 2}, "hugging_face"),
    "GPTNeoX": (SMALL, "hugging_face"),
    "GPT2": (OLDER | {"n_embd": 64, "n_layer": 2, "n_head": 4}, "hugging_face"),
    "GptOss": (HEADS | EXPERTS, "hugging_face_masked"),
    "OPT": (SMALL | {"ffn_dim": 64, "word_embed_proj_dim": 64}, "hugging_face_masked"),
    "Mpt": (OLDER | {"d_model": 64, "n_layers": 2, "n_heads": 4}, "hugging_face_masked"),
    "Bloom": (OLDER | {"hidden_size": 64, "n_layer": 2, "n_head": 4}, "nothing"),
    "Mamba": (STATES | {"eos_token_id": 2}, "nothing"),
    "Mamba2": (STATES | {"num_heads": 8, "head_dim": 16, "n_groups": 1, "chunk_size": 8,
                         "eos_token_id": 2}, "nothing"),
    "Bamba": (SMALL | {"num_key_value_heads": 2, "attn_layer_indices": [1], "mamba_n_heads": 8,
                       "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8}, "nothing"),
}  # fmt: skip


def model_of(name: str) -> Any:
    torch, transformers = peer("torch"), peer("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**MODELS[name][0])
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.filterwarnings("ignore")  # of kernels that are not installed
@pytest.mark.parametrize("name", MODELS)
def test_a_leak_is_refused_with_the_form_that_has_none(name: str) -> None:
    model, apart = model_of(name), MODELS[name][1]
    from corpus_loader.trainers.forms import hugging_face, hugging_face_masked
    from corpus_loader.trainers.leaks import check_leak

    if apart == "hugging_face":
        check_leak(model, hugging_face)
    else:
        advice = {"nothing": "No form keeps them apart"}.get(apart, f"form={apart},")
        with pytest.raises(CorpusError, match=f"logits of the second change by .*{advice}"):
            check_leak(model, hugging_face)
    if apart == "hugging_face_masked":
        check_leak(model, hugging_face_masked)
    assert model.training


def test_a_model_that_cannot_be_read_alone_is_said(caplog: pytest.LogCaptureFixture) -> None:
    model = model_of("Llama")
    from corpus_loader.trainers.leaks import check_leak

    check_leak(model, lambda batch: {"input_ids": batch["tokens"][:, :, None, None]})
    assert "is not known" in caplog.text


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_does_not_begin_with_a_leak(tmp_path: Path) -> None:
    _, transformers = peer("torch"), peer("transformers")
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    write_phase(tmp_path / "store", {"books": [[[[11, 12, 13, 14], [21, 22]]]]})
    args = transformers.TrainingArguments(
        str(tmp_path / "out"), max_steps=1, use_cpu=True, report_to=[], disable_tqdm=True,
        per_device_train_batch_size=1,
    )  # fmt: skip

    def train(**options: Any) -> None:
        loader = CorpusLoader(
            tmp_path / "store", batch_size=1, options=LoaderOptions(with_documents=True)
        )
        corpus = CorpusDataLoader(CorpusDataset(loader))
        CorpusTrainer(model_of("OPT"), args, corpus=corpus, **options).train()

    with pytest.raises(CorpusError, match="or documents_apart=False to train so"):
        train()
    train(documents_apart=False)
