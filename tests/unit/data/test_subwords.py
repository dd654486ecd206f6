"""Texts tokenized into the subwords of a checkpoint."""

import subprocess
import sys

import numpy as np
import pytest

from plumbline.config.checkpoints import find_checkpoint
from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus, Example
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES
from plumbline.data.subwords import load_tokenizer, tokenize_subwords
from plumbline.errors import PlumblineError
from plumbline.store import read_table, write_table

TEXTS = [
    "the film was unbelievably good",
    "don 't , naïve — 中文 ends",
    "a bad </s> [SEP] plot",
    "john",
]
QUESTIONS = ["where is john ?", "was it good ?", "what ?", "<s> who"]


def table_of(tmp_path, texts=TEXTS, pairs=None, evidence=None):
    """The table of instances that preparation makes of these texts, each of them in every split."""
    pairs = pairs or [None] * len(texts)
    evidence = evidence or [None] * len(texts)
    examples = [
        Example(split, i % 2, text.split(), pair and pair.split(), [0, 1] if pair else None, flags)
        for split in ("train", "dev", "test")
        for i, (text, pair, flags) in enumerate(zip(texts, pairs, evidence, strict=True))
    ]
    prepared = prepare(Corpus(examples, ["bad", "good"]), Preparation(), "texts")
    write_table(tmp_path / "words.parquet", INSTANCES, prepared.instances)
    return read_table(tmp_path / "words.parquet", INSTANCES)


@pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert"])
def test_subwords_are_the_tokenizers(checkpoint, request, tmp_path):
    folder = str(request.getfixturevalue(checkpoint))
    tokenizer = load_tokenizer(folder)
    columns, summary = tokenize_subwords(table_of(tmp_path), folder)
    write_table(tmp_path / "subwords.parquet", INSTANCES, columns)
    assert read_table(tmp_path / "subwords.parquet", INSTANCES).num_rows == 3 * len(TEXTS)
    for i, text in enumerate(TEXTS * 3):
        encoded = tokenizer(text, split_special_tokens=True)["input_ids"]
        assert columns["ids"][i] == encoded
        assert columns["tokens"][i] == tokenizer.convert_ids_to_tokens(encoded)
        assert columns["maskable"][i] == [False, *[True] * (len(encoded) - 2), False]
        assert columns["ids_b"][i] is columns["tokens_b"][i] is columns["evidence"][i] is None
    assert columns["instance"] == [*range(len(TEXTS))] * 3 and columns["label"] == [0, 1, 0, 1] * 3
    assert summary == {
        "checkpoint": folder,
        "mask_id": tokenizer.mask_token_id,
        "unknown_id": tokenizer.unk_token_id,
        "vocabulary_size": len(tokenizer),
        "maximum": 64,
        "longest": max(map(len, columns["ids"])),
        "cut": 0,
    }


@pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert"])
def test_a_second_text_follows_with_one_separator(checkpoint, request, tmp_path):
    folder = str(request.getfixturevalue(checkpoint))
    tokenizer = load_tokenizer(folder)
    columns, summary = tokenize_subwords(table_of(tmp_path, pairs=QUESTIONS), folder)
    for i, (text, question) in enumerate(zip(TEXTS, QUESTIONS, strict=True)):
        first, second = (tokenizer(one, split_special_tokens=True)["input_ids"] for one in (text, question))
        assert columns["ids"][i] == first and columns["ids_b"][i] == second[1:]
        assert columns["tokens_b"][i] == tokenizer.convert_ids_to_tokens(second[1:])
        if checkpoint == "tiny_bert":
            both = tokenizer(text, question, split_special_tokens=True)
            assert columns["ids"][i] + columns["ids_b"][i] == both["input_ids"]
    assert columns["answers"] == [[0, 1]] * 3 * len(TEXTS)
    assert summary["longest"] == max(len(a) + len(b) for a, b in zip(columns["ids"], columns["ids_b"], strict=True))


def test_a_spelled_out_special_token_is_text(tiny_checkpoint, tmp_path):
    columns, _ = tokenize_subwords(table_of(tmp_path, ["</s> <mask>", "<pad> a"]), str(tiny_checkpoint))
    for ids in columns["ids"]:
        assert min(ids[1:-1]) > 4 and (ids[0], ids[-1]) == (0, 2)


@pytest.mark.parametrize("length", [61, 62, 63, 500])
@pytest.mark.parametrize("paired", [False, True])
def test_the_first_text_is_truncated_to_the_maximum_length(length, paired, tiny_bert, tmp_path):
    texts = ["good", " ".join((["the", "was"] * length)[:length])]
    columns, summary = tokenize_subwords(table_of(tmp_path, texts, ["john ?"] * 2 if paired else None), str(tiny_bert))
    tokenizer = load_tokenizer(str(tiny_bert))
    whole = tokenizer(texts[1])["input_ids"]
    assert len(whole) == length + 2, "every word is one subword"
    room = 64 - (3 if paired else 0)
    assert columns["ids"][1] == ([*whole[: room - 1], whole[-1]] if len(whole) > room else whole)
    assert len(columns["maskable"][1]) == len(columns["tokens"][1]) == len(columns["ids"][1])
    assert summary["cut"] == (3 if len(whole) > room else 0)
    assert summary["longest"] == min(64, length + 2 + (3 if paired else 0))
    assert columns["ids_b"][1] == (tokenizer("john ?")["input_ids"][1:] if paired else None)


def test_a_second_text_that_leaves_no_room_is_refused(tiny_bert, tmp_path):
    table = table_of(tmp_path, ["good", "bad"], ["what ?", "the " * 60 + "was"])
    with pytest.raises(PlumblineError, match="Instance 1 of split 'train': its second text has 62 subwords"):
        tokenize_subwords(table, str(tiny_bert))
    tokenize_subwords(table_of(tmp_path, ["good", "bad"], ["what ?", "the " * 59 + "was"]), str(tiny_bert))


@pytest.mark.parametrize("checkpoint", ["tiny_checkpoint", "tiny_bert"])
def test_evidence_of_a_subword_is_that_of_its_word(checkpoint, request, tmp_path):
    folder = str(request.getfixturevalue(checkpoint))
    tokenizer = load_tokenizer(folder)
    texts = ["zebra unbelievable naïve 中文 — don't", "football , kitchen"]
    evidence = [[i % 2 == 0 for i, _ in enumerate(text.split())] for text in texts]
    columns, _ = tokenize_subwords(table_of(tmp_path, texts, evidence=evidence), folder)
    for i, (text, flags) in enumerate(zip(texts, evidence, strict=True)):
        words = text.split()
        expected = [False]
        for number, (word, flag) in enumerate(zip(words, flags, strict=True)):
            spelt = word if number == 0 or checkpoint == "tiny_bert" else f" {word}"
            expected += [flag] * len(tokenizer(spelt, add_special_tokens=False)["input_ids"])
        assert columns["evidence"][i] == [*expected, False]
        assert np.sum(columns["evidence"][i]) > sum(flags), "some word is of several subwords"


def test_a_text_without_subwords_is_unknown(tiny_bert, tmp_path):
    columns, _ = tokenize_subwords(table_of(tmp_path, ["\x00 \x00", "good"]), str(tiny_bert))
    assert columns["tokens"][0] == ["[CLS]", "[UNK]", "[SEP]"] and columns["maskable"][0] == [False, True, False]


def test_long_texts_come_without_warnings(tiny_checkpoint, tmp_path, capfd):
    tokenize_subwords(table_of(tmp_path, ["the film " * 90, "good"]), str(tiny_checkpoint))
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_is_a_folder_a_package_or_a_name(tiny_checkpoint, tmp_path, monkeypatch):
    assert find_checkpoint(str(tiny_checkpoint)) == str(tiny_checkpoint)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roberta-base").mkdir()
    assert find_checkpoint("roberta-base") == "roberta-base", "a folder without config.json is none"
    assert find_checkpoint("someone/some-model") == "someone/some-model"

    inner = tmp_path / "packages" / "my_model_v2" / "weights"
    (inner / "1_Pooling").mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("raise AssertionError('imported')")
    for folder in (inner, inner / "1_Pooling"):
        (folder / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert find_checkpoint("my-model-v2") == find_checkpoint("my_model_v2") == str(inner)


def test_to_find_a_checkpoint_does_not_import_transformers():
    program = (
        "import sys\nfrom plumbline.config.checkpoints import find_checkpoint\nfind_checkpoint('roberta-base')\n"
        "sys.exit('transformers' in sys.modules or 'torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_missing_checkpoint_is_reported_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PlumblineError) as caught:
        load_tokenizer("nobody/nothing-there")
    sentence = str(caught.value)
    assert sentence.startswith("The checkpoint 'nobody/nothing-there' cannot be read (")
    assert "\n" not in sentence
    assert sentence.endswith("and the Hugging Face Hub did not provide it; check its name and the network.")
    with pytest.raises(PlumblineError, match="cannot be read"):
        load_tokenizer(str(tmp_path))
