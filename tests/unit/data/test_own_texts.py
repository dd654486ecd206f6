"""Rows of an own table become a corpus: classes, splits, dropped rows and evidence."""

from collections import Counter
from collections.abc import Sequence

import pytest

from plumbline.data.corpus import Corpus
from plumbline.data.marked_words import flag_words, read_spans
from plumbline.data.own_texts import TextOptions, read_corpus, select_rows
from plumbline.data.tabular import Row
from plumbline.errors import PlumblineError

SPLITS = ("train", "dev", "test")


def rows(values: Sequence[tuple], names: str = "text label split") -> list[Row]:
    return [Row(dict(zip(names.split(), row, strict=True)), "a.csv", i) for i, row in enumerate(values, 2)]


def options(**others) -> TextOptions:
    return TextOptions(**{"text": "text", "label": "label", "split": "split", "tokens": "spaces", **others})


def corpus(values: Sequence[tuple], names: str = "text label split", **others) -> Corpus:
    return read_corpus(rows(values, names), options(**others), seed=3)


def fault(*arguments, **others) -> str:
    with pytest.raises(PlumblineError) as error:
        corpus(*arguments, **others)
    assert "\n" not in str(error.value)
    return str(error.value)


FULL = [(f"text {split} {label}", label, split) for split in SPLITS for label in ("10", "2")]


def test_classes_are_the_sorted_distinct_labels():
    assert corpus(FULL).classes == ["2", "10"]
    assert [example.label for example in corpus(FULL).examples] == [1, 0] * 3
    words = [(text, {"10": "yes", "2": "no"}[label], split) for text, label, split in FULL]
    assert corpus(words).classes == ["no", "yes"]


def test_named_classes_join_labels_and_drop_the_others():
    values = [(f"{split} {star}", star, split) for split in SPLITS for star in (1, 2.0, 3, 4, "5.0")]
    found = corpus(values, classes={"1": "negative", "2": "negative", "4": "positive", "5": "positive"})
    assert found.classes == ["negative", "positive"]
    assert found.dropped == {"label not in classes": dict.fromkeys(SPLITS, 1)}
    assert [(e.tokens[1], e.label) for e in found.examples[:4]] == [("1", 0), ("2.0", 0), ("4", 1), ("5.0", 1)]
    listed = corpus(values, classes=["5", "1"])
    assert listed.classes == ["5", "1"] and {e.label for e in listed.examples if e.tokens[1] == "1"} == {1}


def test_names_of_splits():
    values = [("a", "x", "Training"), ("b", "y", "train"), ("a", "x", "VALID"), ("b", "y", "validation"),
              ("a", "x", "test"), ("b", "y", "testing")]  # fmt: skip
    assert [e.split for e in corpus(values).examples] == ["train", "train", "dev", "dev", "test", "test"]
    assert fault([("a", "x", "fold1")]) == (
        "'a.csv', line 2: column 'split' holds 'fold1', which is not a split; write one of train, training; dev, "
        "development, val, valid, validation; test, testing."
    )


def test_drawn_splits_are_stratified_and_recorded():
    values = [(f"text {i}", "rare" if i % 5 == 0 else "common") for i in range(100)]
    found = corpus(values, "text label", split="")
    counts = Counter((e.split, found.classes[e.label]) for e in found.examples)
    assert counts == {("train", "common"): 64, ("dev", "common"): 8, ("test", "common"): 8,
                      ("train", "rare"): 16, ("dev", "rare"): 2, ("test", "rare"): 2}  # fmt: skip
    assert found.drawn == {"shares": {"train": 0.8, "dev": 0.1, "test": 0.1}, "seed": 3, "stratified": True}
    assert corpus(values, "text label", split="") == found
    other = read_corpus(rows(values, "text label"), options(split=""), seed=4)
    assert [e.split for e in other.examples] != [e.split for e in found.examples]
    plain = corpus(values, "text label", split="", stratified=False, shares={"train": 0.5, "val": 0.2, "test": 0.3})
    assert Counter(e.split for e in plain.examples) == {"train": 50, "dev": 20, "test": 30}
    assert plain.drawn == {"shares": {"train": 0.5, "dev": 0.2, "test": 0.3}, "seed": 3, "stratified": False}


def test_the_draw_of_a_class_does_not_depend_on_another():
    values = [(f"text {i}", "rare" if i % 5 == 0 else "common") for i in range(100)]
    fewer = [row for i, row in enumerate(values) if i % 5 == 0 or i < 60]
    drawn = [
        {" ".join(e.tokens): e.split for e in found.examples if found.classes[e.label] == "rare"}
        for found in (corpus(values, "text label", split=""), corpus(fewer, "text label", split=""))
    ]
    assert drawn[0] == drawn[1]


def test_dev_is_drawn_from_train():
    values = [(f"text {i}", "xy"[i % 2], "test" if i < 20 else "train") for i in range(60)]
    found = corpus(values, dev_share=0.25)
    assert Counter(e.split for e in found.examples) == {"train": 30, "dev": 10, "test": 20}
    assert found.drawn == {"dev_share": 0.25, "seed": 3, "stratified": True}
    assert all(e.split == "test" for e in found.examples[:20])
    assert fault(values) == (
        "No row belongs to the split 'dev'; add some, or set `dev_share: 0.1` to draw it from train."
    )


def test_empty_texts_missing_labels_and_duplicates_are_dropped_and_counted():
    values = [*FULL, ("  ", "2", "train"), (None, "2", "dev"), ("x", "", "test"), ("x", None, "test"),
              ("x", float("nan"), "test"), ("text train 10", "2", "test")]  # fmt: skip
    found = corpus(values, duplicates="drop")
    assert found.dropped == {"empty text": {"train": 1, "dev": 1}, "no label": {"test": 3}, "duplicate": {"test": 1}}
    assert len(found.examples) == 6 and len(corpus(values).examples) == 7


def test_pairs():
    values = [("a premise", "a claim", "xy"[i % 2], split) for split in SPLITS for i in range(2)]
    found = corpus([*values, ("text", " ", "x", "train")], "text second label split", pair="second")
    assert found.examples[0].tokens == ["a", "premise"] and found.examples[0].pair == ["a", "claim"]
    assert found.dropped == {"empty text": {"train": 1}}
    # A second text makes another instance.
    twins = [("same", f"claim {split} {i}", "xy"[i % 2], split) for split in SPLITS for i in range(2)]
    found = corpus([*twins, twins[0]], "text second label split", pair="second", duplicates="drop")
    assert found.dropped == {"duplicate": {"train": 1}} and len(found.examples) == 6


def test_tokens():
    values = [("Don't  pay 3 Euros", label, split) for _, label, split in FULL]
    words = {form: corpus(values, tokens=form).examples[0].tokens for form in ("spaces", "cased", "cleaned")}
    assert words == {
        "spaces": ["Don't", "pay", "3", "Euros"],
        "cased": ["Do", "n't", "pay", "3", "Euros"],
        "cleaned": ["do", "n't", "pay", "qqq", "euros"],
    }


def test_evidence_by_flags_and_by_spans():
    text = "Don't  pay 3 Euros"
    for form, value in (("flags", "1 0 0 1"), ("flags", [1, 0, 0, 1]), ("spans", "[[0, 5], [13, 18]]")):
        values = [(text, label, split, value) for _, label, split in FULL]
        found = corpus(values, "text label split why", evidence="why", evidence_form=form, tokens="cleaned")
        assert found.examples[0].evidence == [True, True, False, False, True], form
    # A span of a part of a word marks the words that it overlaps.
    assert flag_words(["Do", "n't", "pay"], "Don't pay", [(2, 3)]) == [False, True, False]
    assert flag_words(["Do", "n't", "pay"], "Don't pay", [(5, 6)]) == [False] * 3
    assert read_spans(None, "a b", "flags") == [] and read_spans("", "a b", "spans") == []


@pytest.mark.parametrize(
    ("form", "value", "complaint"),
    [
        ("flags", "0 1", "holds 2 flags, but the text has 3 words separated by white space"),
        ("flags", "0 2 1", "holds '2' instead of flags 0 or 1"),
        ("spans", "0-3", "is not a list of [start, end], such as [[0, 4], [9, 12]]"),
        ("spans", "[[0, 40]]", "holds the span [0, 40], which is not inside the text of 13 characters"),
        ("spans", "[[3, 3]]", "holds the span [3, 3]"),
    ],
)
def test_wrong_evidence_is_refused_with_its_line(form, value, complaint):
    values = [(f"text {s:5} {label:2}", label, s, value) for _, label, s in FULL]
    message = fault(values, "text label split why", evidence="why", evidence_form=form)
    with pytest.raises(PlumblineError, match="column 'why'"):
        select_rows(rows(values, "text label split why"), options(evidence="why", evidence_form=form), 0)
    assert message.startswith("'a.csv', line 2: column 'why' ") and complaint in message


@pytest.mark.parametrize(
    ("values", "others", "complaint"),
    [
        ([(f"t{i}", i, "train") for i in range(500)], {}, "Column 'label' holds 500 different labels, such as 0, 1"),
        ([("t", "x", s) for s in SPLITS], {}, "Column 'label' holds only the label 'x'; a study needs two classes"),
        ([("", "x", "train")], {}, "a label in column 'label'; check that `text` and `label` name"),
        ([("", "x", "train")], {"classes": ["x", "y"]}, "No row has a text in column 'text' and a label in column"),
        (FULL[:4], {}, "No row belongs to the split 'test'; add some."),
        ([(["a"], "x", "train")], {}, "'a.csv', line 2: column 'text' holds a list; it must hold text."),
        ([("t", ["x"], "train")], {}, "line 2: the label in column 'label' is ['x']; it must be one value."),
    ],
)  # fmt: skip
def test_faults(values, others, complaint):
    assert complaint in fault(values, **others)


def test_a_wrong_label_in_classes_lists_those_of_the_column():
    values = [*FULL, ("more", "10", "train"), ("", "3", "train"), ("empty", "", "train")]
    assert fault(values, classes={"10": "good", "two": "bad"}) == (
        "No row has the class 'bad'; correct `classes`: column 'label' holds '10' (4 rows), '2' (3 rows), of which '2' "
        "is not in `classes`."
    )
    assert fault([*FULL, ("more", "7", "train")], classes=["8", "9"]) == (
        "No row has one of the labels '8', '9'; correct `classes`: column 'label' holds '10' (3 rows), '2' (3 rows), "
        "'7' (1 row), none of which is in `classes`."
    )
    many = [(f"t{i}", f"label {i % 30} {'of words ' * 9}", "train") for i in range(45)]
    message = fault([("t", "x", "train"), *many], classes=["x", "y"])
    # The first ten, the most frequent first, cut if they are long.
    assert message.count("(2 rows)") == 10 and "(1 row)" not in message
    assert " and 21 more, of which 'label 0" in message and message.endswith(" and 20 more are not in `classes`.")
    assert "'label 0 of words of words of words of w…' (2 rows)" in message


def test_a_class_too_rare_for_a_drawn_split_is_named():
    values = [(f"t{i}", "rare" if i < 2 else "common") for i in range(40)]
    message = fault(values, "text label", split="")
    assert message.startswith("Class 'rare' has 2 rows, none of which was drawn for 'dev'; leave out the class")
    assert "`dev_share` draws dev from train, but the data has no splits" in fault(
        values, "text label", split="", dev_share=0.1
    )


VERBS = [("The keys to the cabinet", "are", "is"), ("The key to the cabinets", "is", "are"),
         ("The dogs near the gate", "bark", "barks")]  # fmt: skip


def test_each_row_may_have_answers_of_its_own():
    found = corpus([(*row, split) for split in SPLITS for row in VERBS], "text label foil split", answers=["foil"])
    assert found.classes == ["are", "bark", "barks", "is"] and not found.every_class
    assert [(e.label, e.answers) for e in found.examples[:3]] == [(0, [0, 3]), (3, [3, 0]), (1, [1, 2])]
    # The column of the label may be among them, a cell may be empty, and a cell may hold a list.
    values = [("a b", "is", ["are", "is", "was"], None, split) for split in SPLITS]
    found = corpus(values, "text label others more split", answers=["label", "others", "more"])
    assert found.classes == ["are", "is", "was"] and found.examples[0].answers == [1, 0, 2]
    # A row without a second answer asks nothing.
    found = corpus([*values, ("a b", "is", "is", "", "train")], "text label others more split", answers=["others"])
    assert found.dropped == {"no second answer": {"train": 1}}
    assert "column 'foil' holds {'a': 1}; it must hold an answer or a list" in fault(
        [("a", "is", {"a": 1}, "train")], "text label foil split", answers=["foil"]
    )


def test_answers_may_be_many_and_rare_also_in_drawn_splits():
    values = [(f"text {i}", f"verb {i}", f"verbs {i}") for i in range(150)]
    found = corpus(values, "text label foil", split="", answers=["foil"])
    assert len(found.classes) == 300 and Counter(e.split for e in found.examples) == {
        "train": 120, "dev": 15, "test": 15,
    }  # fmt: skip
    assert not found.drawn["stratified"]
