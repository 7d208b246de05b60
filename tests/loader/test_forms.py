"""Batches as training frameworks expect them."""

from format_folders import peer
from loader_corpus import write_phase
from prelude import Any, Path, pytest

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions

NO = -100  # a label that is ignored


def batch_of(store: Path, *, with_documents: bool = True) -> Any:
    """A row of eight: documents of four and two tokens, and padding."""
    peer("torch")
    from corpus_loader.torch_dataset import CorpusDataset

    write_phase(store, {"books": [[[[11, 12, 13, 14], [21, 22]]]]})
    options = LoaderOptions(with_documents=with_documents)
    [batch] = CorpusDataset(CorpusLoader(store, batch_size=1, options=options))
    return batch


def test_labels_of_transformers_are_the_tokens_themselves(tmp_path: Path) -> None:
    batch = batch_of(tmp_path)
    from corpus_loader.trainers.forms import hugging_face, hugging_face_flat

    form = hugging_face(batch)
    assert form.pop("use_cache") is False
    assert {name: tensor.tolist() for name, tensor in form.items()} == {
        "input_ids": [[11, 12, 13, 14, 21, 22, 0, 0]],
        "labels": [[NO, 12, 13, 14, NO, 22, NO, NO]],
        "position_ids": [[0, 1, 2, 3, 0, 1, 0, 1]],
    }
    flat = hugging_face_flat(batch)
    assert flat["cu_seq_lens_q"].tolist() == flat["cu_seq_lens_k"].tolist() == [0, 4, 6, 8]
    assert (flat["max_length_q"], flat["max_length_k"]) == (4, 4)
    assert flat["labels"].tolist() == form["labels"].tolist()


def test_labels_of_the_next_token_are_shifted(tmp_path: Path) -> None:
    batch = batch_of(tmp_path)
    from corpus_loader.trainers.forms import next_token

    inputs, labels = next_token(batch)
    assert inputs["input"].tolist() == [[11, 12, 13, 14, 21, 22, 0, 0]]
    assert labels.tolist() == [[12, 13, 14, NO, 22, NO, NO, NO]]


def test_a_token_sees_earlier_ones_of_its_document_only(tmp_path: Path) -> None:
    batch = batch_of(tmp_path)
    from corpus_loader.trainers.forms import document_ids, document_mask

    assert document_ids(batch).tolist() == [[1, 1, 1, 1, 2, 2, 3, 3]]
    mask = document_mask(batch)
    assert mask.shape == (1, 1, 8, 8)
    expected = [*([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]), *([4], [4, 5], [6], [6, 7])]
    assert [row.nonzero().flatten().tolist() for row in mask[0, 0]] == expected


def test_a_batch_without_documents_is_refused(tmp_path: Path) -> None:
    batch = batch_of(tmp_path, with_documents=False)
    from corpus_loader.trainers.forms import next_token

    with pytest.raises(CorpusError, match="LoaderOptions\\(with_documents=True\\)"):
        next_token(batch)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("is_training", [True, False], ids=["train", "eval"])
def test_documents_do_not_see_each_other_whatever_the_model_does_by_default(
    attention: str, is_training: bool, tmp_path: Path
) -> None:
    torch, transformers = peer("torch"), peer("transformers")
    from corpus_loader.trainers.forms import hugging_face, hugging_face_flat

    batch = batch_of(tmp_path)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(vocab_size=32, num_attention_heads=2, **small)
    config._attn_implementation, config.use_cache = attention, True
    model = transformers.LlamaForCausalLM(config).train(is_training)
    model.generation_config.use_cache = True
    for form in (hugging_face, hugging_face_flat):
        given, other = form(batch), form(batch)
        other["input_ids"] = other["input_ids"].clone()
        other["input_ids"][0, :4] = 3
        with torch.no_grad():
            one, two = (model(**each).logits[0] for each in (given, other))
        assert (one[4:6] == two[4:6]).all() and (one[:4] != two[:4]).any()


def test_ranks_have_the_chunks_that_count_from_both_ends_of_each_document() -> None:
    torch = peer("torch")
    from corpus_loader.trainers.forms import chunks_of_rank

    edges = torch.tensor([0, 8, 24], dtype=torch.int32)
    assert chunks_of_rank(edges, 0, 2).tolist() == [0, 1, 6, 7, *range(8, 12), *range(20, 24)]
    assert chunks_of_rank(edges, 1, 2).tolist() == [*range(2, 6), *range(12, 20)]
    assert chunks_of_rank(edges, 0, 1).tolist() == [*range(24)]
