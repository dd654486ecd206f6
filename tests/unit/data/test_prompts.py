"""Prompts: their parts, and which tokens are whose."""

import re

import numpy as np
import pytest

from plumbline.config.prompts import parse_prompt
from plumbline.data.aligned import AlignedTokens
from plumbline.data.subwords import tokenize_subwords
from plumbline.errors import PlumblineError
from tests.unit.data.test_subwords import QUESTIONS, TEXTS, table_of
from tests.unit.models.test_causal import save_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from plumbline.conformance.checkpoints import save_checkpoint

    folder = tmp_path_factory.mktemp("gpt2")
    save_checkpoint(folder, "gpt2", causal=True, vocab_size=300, max_position_embeddings=160)
    save_tokenizer(folder)
    return str(folder)


def test_parts_of_a_prompt():
    assert parse_prompt("Review: {text}\nSentiment:", False).parts == ["Review: ", "\nSentiment:"]
    assert parse_prompt("{text}", False).parts == ["", ""]
    pair = parse_prompt("{text} Q: {pair} {{A}}:", True)
    assert pair.parts == ["", " Q: ", " {A}:"] and pair.fill("it rains", "why") == "it rains Q: why {A}:"


@pytest.mark.parametrize(
    ("prompt", "paired", "fault"),
    [
        ("Review:", False, "for single texts it must contain {text}, once each, and no other placeholder."),
        ("{text} {text}", False, "for single texts it must contain {text}"),
        ("{text} {pair}", False, "for single texts it must contain {text}"),
        ("{text}", True, "for pairs of texts it must contain {text} and then {pair}"),
        ("{pair} {text}", True, "for pairs of texts it must contain {text} and then {pair}"),
        ("{text} {", False, "write {{ and }} for braces."),
    ],
)
def test_prompts_without_a_place_for_each_text_are_refused(prompt, paired, fault):
    with pytest.raises(PlumblineError, match=re.escape(fault)):
        parse_prompt(prompt, paired)


@pytest.mark.parametrize("paired", [False, True])
def test_tokens_are_those_of_the_whole_prompt(paired, folder, tmp_path):
    from transformers import AutoTokenizer

    prompt = "Story: {text}\nQuestion: {pair}\nAnswer:" if paired else "Review: {text}\nSentiment:"
    table = table_of(tmp_path, pairs=QUESTIONS if paired else None)
    columns, summary = tokenize_subwords(table, folder, prompt)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for i, text in enumerate(TEXTS):
        question = {"pair": QUESTIONS[i]} if paired else {}
        whole = tokenizer(prompt.format(text=text, **question), split_special_tokens=True)["input_ids"]
        assert columns["ids"][i] + (columns["ids_b"][i] or []) == whole
        for suffix, words in (("", text), ("_b", QUESTIONS[i])) if paired else (("", text),):
            ids, free = np.array(columns[f"ids{suffix}"][i]), np.array(columns[f"maskable{suffix}"][i])
            assert tokenizer.decode(ids[free]).strip() == words, "all tokens of the text and none of the prompt"
            spelled = words.split()
            for place, word in enumerate(spelled):
                own = ids[free][np.array(columns[f"word{suffix}"][i]) == place]
                assert tokenizer.decode(own).strip() == word
        assert columns["tokens"][i] == tokenizer.convert_ids_to_tokens(columns["ids"][i])
    assert summary["maximum"] == 160 - 16 and summary["cut"] == 0
    assert summary["mask_id"] == summary["unknown_id"] == tokenizer.eos_token_id


def test_a_long_text_is_cut_and_the_prompt_stays(folder, tmp_path):
    table = table_of(tmp_path, ["the " * 200 + "end", "good"])
    columns, summary = tokenize_subwords(table, folder, "Review: {text}\nSentiment:")
    first, other = columns["ids"][0], columns["ids"][1]
    assert len(first) == summary["longest"] == summary["maximum"] == 144 and summary["cut"] == 3
    free = np.array(columns["maskable"][0])
    assert np.array(first)[~free].tolist() == np.array(other)[~np.array(columns["maskable"][1])].tolist()


def test_evidence_and_groups_follow_the_words(folder, tmp_path):
    table = table_of(tmp_path, ["the film was good", "a bad plot"], evidence=[[False, True, False, True], [True] * 3])
    columns, _ = tokenize_subwords(table, folder, "Review: {text}\nSentiment:")
    marked = np.array(columns["evidence"][0])
    words = np.array(columns["word"][0])
    assert marked[~np.array(columns["maskable"][0])].sum() == 0
    assert set(words[marked[np.array(columns["maskable"][0])]]) == {1, 3}


def test_tokens_of_words_are_cut_from_the_end():
    tokens = AlignedTokens(np.array([9, 1, 2, 3, 8]), np.array([-1, 0, 1, 1, -1]))
    cut = tokens.without_last(2)
    assert cut.ids.tolist() == [9, 1, 8] and cut.word.tolist() == [-1, 0, -1]
    assert tokens.spread([True, False], False) == [False, True, False, False, False]
    assert tokens.without_last(0).ids.tolist() == tokens.ids.tolist()
