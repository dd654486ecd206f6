"""Pictures: folders of them, generated ones, and the instances that become of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from plumbline.config.recipes import Preparation
from plumbline.config.resolve import resolve
from plumbline.data import images as prepared_pictures
from plumbline.data.corpus import Corpus, Example
from plumbline.data.datasets.birds import birds, pictures
from plumbline.data.datasets.textures import LARGEST, SHAPES, SMALLEST, _cover, textures
from plumbline.data.images import ImageCorpus, ImageExample, prepare_images
from plumbline.data.instances import Instances
from plumbline.data.pixels import unpack
from plumbline.data.prepare import prepare
from plumbline.data.raw import check_raw, raw_files
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.errors import PlumblineError
from plumbline.registry import Registry
from plumbline.store import read_table, write_table

SPLITS = {"train": 4, "dev": 2, "test": 2}
FOLDERS = {"train": "train", "dev": "val", "test": "test"}


def image(seed: int, side: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(side, side, 3), dtype=np.uint8)


def corpus(side: int = 6, **changes: Any) -> ImageCorpus:
    """Pictures of two classes; the label of a picture is the parity of its number."""
    found = [
        ImageExample(split, i % 2, image(i, side))
        for place, (split, count) in enumerate(SPLITS.items())
        for i in range(10 * place, 10 * place + count)
    ]
    return ImageCorpus(found, ["gull", "tern"], **changes)


def lay_out(raw: Path, side: int = 6, form: str = "png", folder: str = "birds") -> Path:
    """The files of `corpus` in the layout of the study."""
    for number, picture in enumerate(corpus(side).pictures):
        place = raw / folder / FOLDERS[picture.split] / ("gull", "tern")[picture.label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.pixels).save(place / f"{number:03}.{form}")
    return raw


def test_instances_are_texts_of_pixels(tmp_path: Path) -> None:
    made = prepare_images(corpus(), Preparation(), "some")
    write_table(tmp_path / "instances.parquet", INSTANCES, made.instances)
    write_table(tmp_path / "vocabulary.parquet", VOCABULARY, made.vocabulary)
    assert read_table(tmp_path / "vocabulary.parquet", VOCABULARY).num_rows == 0
    table = read_table(tmp_path / "instances.parquet", INSTANCES)
    assert table["tokens"].to_pylist() == [[]] * 8
    instances = Instances.from_table(table, list(SPLITS))
    assert instances.ids[0].dtype == np.int32 and instances.pair is None
    assert all(free.all() and len(free) == 36 for free in instances.maskable)
    for found, picture in zip(instances.ids, corpus().pictures, strict=True):
        np.testing.assert_array_equal(unpack(found), picture.pixels)
    assert instances.label.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert instances.instance.tolist() == [0, 1, 2, 3, 0, 1, 0, 1]


def test_the_record_has_what_that_of_texts_has() -> None:
    dropped = {"too dark": {"train": 3}}
    told = prepare_images(corpus(dropped=dropped), Preparation(seed=4), "some", {"train": 9, "dev": 2}).summary
    texts = Corpus([Example(p.split, p.label, ["a"]) for p in corpus().pictures], ["gull", "tern"])
    of_texts = prepare(texts, Preparation(), "some").summary
    assert told.keys() - of_texts.keys() == {"side"} and not of_texts.keys() - told.keys()
    assert told["splits"]["train"].keys() == of_texts["splits"]["train"].keys()
    assert told["side"] == 6 and told["seed"] == 4 and told["paired"] is False and told["dropped"] == dropped
    assert told["partial"] == {"train": {"texts": 4, "published": 9}}
    assert told["splits"]["train"] == {
        "texts": 4, "instances": 4, "texts_per_class": {"gull": 2, "tern": 2},
        "instances_per_class": {"gull": 2, "tern": 2}, "mean_length": 36.0, "shortest": 36, "longest": 36,
        "unknown_share": 0.0,
    }  # fmt: skip


def test_a_limit_takes_the_sample_that_it_takes_of_texts() -> None:
    some = ImageCorpus([ImageExample(s, i % 2, image(i)) for s in SPLITS for i in range(40)], ["gull", "tern"])
    recipe = Preparation(limit=10, seed=3)
    made = prepare_images(some, recipe, "some")
    texts = Corpus([Example(p.split, p.label, ["a"]) for p in some.pictures], ["gull", "tern"])
    assert made.instances["instance"] == prepare(texts, recipe, "some").instances["instance"]
    assert made.summary["dropped"] == {"limit": {"train": 30, "dev": 30, "test": 30}}
    for number, ids in zip(made.instances["instance"], made.instances["ids"], strict=True):
        np.testing.assert_array_equal(unpack(ids), image(number))


@pytest.mark.parametrize(
    ("change", "recipe", "sentence"),
    [
        ({"split": "valid"}, {}, "a picture may only be in one of the splits train, dev, test"),
        ({"label": 2}, {}, r"label 2 is none of the 2 classes \(gull, tern\)"),
        ({"pixels": image(0, 7)}, {}, r"shape \[7, 7, 3\], not \[6, 6, 3\]"),
        ({"pixels": image(0)[:5]}, {}, r"shape \[5, 6, 3\], not \[6, 6, 3\]"),
        ({"label": 0}, {}, "split 'test' holds no picture of class 'tern': the dataset's files"),
        ({}, {"limit": 1}, "holds no picture of class '(gull|tern)' after the limit of 1: raise `limit`"),
        ({}, {"longer_than": 5}, "`longer_than` is about the words of texts, and pictures have none"),
    ],
)
def test_pictures_that_cannot_be_are_refused(change: dict, recipe: dict, sentence: str) -> None:
    *others, last = corpus().pictures
    stated = {"split": last.split, "label": last.label, "pixels": last.pixels, **change}
    some = ImageCorpus([*others, ImageExample(**stated)], ["gull", "tern"])
    with pytest.raises(PlumblineError, match=sentence):
        prepare_images(some, Preparation(**recipe), "some")


def test_more_pictures_than_published_or_than_a_table_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlumblineError, match="'train' holds 4 pictures, but only 3 were published"):
        prepare_images(corpus(), Preparation(), "some", {"train": 3})
    monkeypatch.setattr(prepared_pictures, "MOST_PIXELS", 8 * 36 - 1)
    with pytest.raises(PlumblineError, match="holds 8 pictures of 6 x 6 pixels, and a table holds no more than 287"):
        prepare_images(corpus(), Preparation(), "some")


def test_a_reader_must_return_what_its_task_says() -> None:
    with pytest.raises(PlumblineError, match="its task is classification, but it holds pictures"):
        prepare_images(corpus(), Preparation(), "some", task="classification")
    assert prepare_images(corpus(), Preparation(), "some", task="image classification").summary["side"] == 6
    texts = Corpus([Example("train", 0, ["a"])], ["gull"])
    with pytest.raises(PlumblineError, match="its task is image classification, but its reader returns texts"):
        prepare(texts, Preparation(), "some", task="image classification")


def test_birds_come_by_species_and_name(tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "birds/train/.cache").mkdir()
    (tmp_path / "birds/train/gull/._000.png").write_text("of a file manager")
    (tmp_path / "birds/train/gull/notes.txt").write_text("no picture")
    found = birds(tmp_path, 0)
    assert found.classes == ["gull", "tern"]
    # Each species of a split one after the other.
    order = sorted(corpus().pictures, key=lambda p: (list(SPLITS).index(p.split), p.label))
    assert [(p.split, p.label) for p in found.pictures] == [(p.split, p.label) for p in order]
    for one, other in zip(found.pictures, order, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_pictures_of_any_folder_and_form_are_brought_to_a_size(tmp_path: Path) -> None:
    lay_out(tmp_path, folder="mine", form="jpeg")
    wide = Image.fromarray(image(1, 12)[:8])
    wide.convert("L").save(tmp_path / "mine/train/gull/wide.PNG")
    found = pictures(tmp_path, 0, folder="mine", size=4)
    assert {p.pixels.shape for p in found.pictures} == {(4, 4, 3)}
    by_hand = np.asarray(wide.convert("L").convert("RGB").resize((4, 4), Image.Resampling.BICUBIC))
    assert any(np.array_equal(p.pixels, by_hand) for p in found.pictures)
    with pytest.raises(PlumblineError, match=r"wide.PNG' has 12 x 8 pixels, and pictures must be square; set"):
        pictures(tmp_path, 0, folder="mine")


def test_faulty_folders_are_told_in_one_sentence(tmp_path: Path) -> None:
    lay_out(tmp_path)
    file = tmp_path / "birds/val/tern/099.png"
    Image.fromarray(image(0, 7)).save(file)
    with pytest.raises(PlumblineError, match=r"099.png' has 7 x 7 pixels and others have 6 x 6; set"):
        birds(tmp_path, 0)
    whole = (tmp_path / "birds/val/tern/005.png").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"GIF89a"):
        file.write_bytes(damaged)
        with pytest.raises(PlumblineError, match=r"099.png' is damaged or no picture: get it again\.$"):
            birds(tmp_path, 0)
    with pytest.raises(PlumblineError, match="`size` is -1"):
        birds(tmp_path, 0, size=-1)
    (tmp_path / "one/train/gull").mkdir(parents=True)
    for split in ("val", "test"):
        (tmp_path / "one" / split).mkdir()
    with pytest.raises(PlumblineError, match="two or more classes, and there is only 'gull'"):
        birds(tmp_path, 0, folder="one")
    with pytest.raises(PlumblineError, match=r"'birds' needs the files 'none/train', 'none/val' and 'none/test'"):
        birds(tmp_path, 0, folder="none")


def test_missing_folders_are_refused_before_any_work(tmp_path: Path) -> None:
    named = {"mine": {"kind": "pictures", "folder": "p"}}
    resolved = resolve({"datasets": named, "models": ["resnet-small"], "seeds": "0", "measures": ["random"]})
    assert raw_files(resolved, "mine", tmp_path) == [str(tmp_path / "p" / folder) for folder in FOLDERS.values()]
    with pytest.raises(PlumblineError, match="'mine' needs the files 'p/train', 'p/val' and 'p/test'"):
        check_raw(resolved, tmp_path)
    lay_out(tmp_path, folder="p")
    check_raw(resolved, tmp_path)


def test_published_counts_are_those_of_eight_species() -> None:
    species = 6 * [(1000, 100, 100)] + [(970, 97, 97), (1001, 99, 100)]
    counts = dict(zip(SPLITS, map(sum, zip(*species, strict=True)), strict=True))
    assert Registry().get("dataset", "birds").counts == counts


SMALL: dict[str, Any] = {"train": 12, "dev": 6, "test": 6, "side": 32}


def test_textures_are_of_the_seed_and_each_split_of_itself() -> None:
    first, again, other = textures(Path(), 1, **SMALL), textures(Path(), 1, **SMALL), textures(Path(), 2, **SMALL)
    longer = textures(Path(), 1, **{**SMALL, "train": 20})
    for one, same in zip(first.pictures, again.pictures, strict=True):
        assert one.label == same.label and np.array_equal(one.pixels, same.pixels)
    assert not any(np.array_equal(a.pixels, b.pixels) for a, b in zip(first.pictures, other.pictures, strict=True))
    tests = [[p.pixels for p in c.pictures if p.split == "test"] for c in (first, longer)]
    np.testing.assert_array_equal(*tests)
    assert Counter((p.split, p.label) for p in first.pictures) == {
        ("train", 0): 6, ("train", 1): 6, ("dev", 0): 3, ("dev", 1): 3, ("test", 0): 3, ("test", 1): 3,
    }  # fmt: skip
    assert first.classes == ["disc", "triangle"] and first.pictures[0].pixels.shape == (32, 32, 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_lie_inside_and_cover_what_they_should(shape: str) -> None:
    random = np.random.default_rng(0)
    shares = []
    for _ in range(40):
        drawn = np.random.default_rng(random.integers(2**32))
        share = np.random.default_rng(drawn.bit_generator.seed_seq).uniform()
        cover = _cover(drawn, shape, 96)
        assert not cover[[0, -1]].any() and not cover[:, [0, -1]].any()
        shares.append(cover.mean() / (SMALLEST + (LARGEST - SMALLEST) * share))
    np.testing.assert_allclose(shares, 1, atol=0.03)


def test_grounds_have_the_spectrum_of_natural_scenes() -> None:
    """Amplitude falls with the frequency by a power between -0.8 and -1.8, shapes and rounding included."""
    found = [p.pixels.mean(2) for p in textures(Path(), 0, train=60, dev=2, test=2).pictures if p.split == "train"]
    power = np.mean([np.abs(np.fft.fft2(p - p.mean())) for p in found], axis=0)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(64), np.fft.fftfreq(64)))
    band = (frequency > 0.03) & (frequency < 0.4)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert -1.8 < slope < -0.8


def test_textures_that_cannot_be_are_refused() -> None:
    with pytest.raises(PlumblineError, match="`classes` is 6; it must be from 2 to 5"):
        textures(Path(), 0, classes=6)
    with pytest.raises(PlumblineError, match="`side` is 31; shapes need"):
        textures(Path(), 0, side=31)
