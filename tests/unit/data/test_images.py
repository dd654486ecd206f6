"""Images: folders of them, generated ones, and their instances."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from plumbline.config.recipes import Preparation
from plumbline.config.resolve import resolve
from plumbline.data import images as prepared_images
from plumbline.data.corpus import Corpus, Example
from plumbline.data.datasets.birds import birds, image_folder
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
    """Images of two classes; the label of an image is the parity of its number."""
    found = [
        ImageExample(split, i % 2, image(i, side))
        for place, (split, count) in enumerate(SPLITS.items())
        for i in range(10 * place, 10 * place + count)
    ]
    return ImageCorpus(found, ["gull", "tern"], **changes)


def lay_out(raw: Path, side: int = 6, form: str = "png", folder: str = "birds") -> Path:
    """The files of `corpus` in the layout of the study."""
    for number, example in enumerate(corpus(side).images):
        place = raw / folder / FOLDERS[example.split] / ("gull", "tern")[example.label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example.pixels).save(place / f"{number:03}.{form}")
    return raw


def test_instances_are_sequences_of_pixels(tmp_path: Path) -> None:
    made = prepare_images(corpus(), Preparation(), "some")
    write_table(tmp_path / "instances.parquet", INSTANCES, made.instances)
    write_table(tmp_path / "vocabulary.parquet", VOCABULARY, made.vocabulary)
    assert read_table(tmp_path / "vocabulary.parquet", VOCABULARY).num_rows == 0
    table = read_table(tmp_path / "instances.parquet", INSTANCES)
    assert table["tokens"].to_pylist() == [[]] * 8
    instances = Instances.from_table(table, list(SPLITS))
    assert instances.ids[0].dtype == np.int32 and instances.pair is None
    assert all(free.all() and len(free) == 36 for free in instances.maskable)
    for found, example in zip(instances.ids, corpus().images, strict=True):
        np.testing.assert_array_equal(unpack(found), example.pixels)
    assert instances.label.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert instances.instance.tolist() == [0, 1, 2, 3, 0, 1, 0, 1]


def test_the_summary_has_the_keys_of_that_of_texts() -> None:
    dropped = {"too dark": {"train": 3}}
    summary = prepare_images(corpus(dropped=dropped), Preparation(seed=4), "some", {"train": 9, "dev": 2}).summary
    texts = Corpus([Example(p.split, p.label, ["a"]) for p in corpus().images], ["gull", "tern"])
    of_texts = prepare(texts, Preparation(), "some").summary
    assert summary.keys() - of_texts.keys() == {"side"} and not of_texts.keys() - summary.keys()
    assert summary["splits"]["train"].keys() == of_texts["splits"]["train"].keys()
    assert (summary["side"], summary["seed"], summary["paired"], summary["dropped"]) == (6, 4, False, dropped)
    assert summary["partial"] == {"train": {"texts": 4, "published": 9}}
    assert summary["splits"]["train"] == {
        "texts": 4, "instances": 4, "texts_per_class": {"gull": 2, "tern": 2},
        "instances_per_class": {"gull": 2, "tern": 2}, "mean_length": 36.0, "shortest": 36, "longest": 36,
        "unknown_share": 0.0,
    }  # fmt: skip


def test_a_limit_samples_as_for_texts() -> None:
    some = ImageCorpus([ImageExample(s, i % 2, image(i)) for s in SPLITS for i in range(40)], ["gull", "tern"])
    recipe = Preparation(limit=10, seed=3)
    made = prepare_images(some, recipe, "some")
    texts = Corpus([Example(p.split, p.label, ["a"]) for p in some.images], ["gull", "tern"])
    assert made.instances["instance"] == prepare(texts, recipe, "some").instances["instance"]
    assert made.summary["dropped"] == {"limit": {"train": 30, "dev": 30, "test": 30}}
    for number, ids in zip(made.instances["instance"], made.instances["ids"], strict=True):
        np.testing.assert_array_equal(unpack(ids), image(number))


@pytest.mark.parametrize(
    ("change", "recipe", "sentence"),
    [
        ({"split": "valid"}, {}, "the split must be one of train, dev, test"),
        ({"label": 2}, {}, r"label 2 is not one of the 2 classes \(gull, tern\)"),
        ({"pixels": image(0, 7)}, {}, r"shape \[7, 7, 3\], not \[6, 6, 3\]"),
        ({"pixels": image(0)[:5]}, {}, r"shape \[5, 6, 3\], not \[6, 6, 3\]"),
        ({"label": 0}, {}, "split 'test' holds no image of class 'tern': the dataset's files"),
        ({}, {"limit": 1}, "holds no image of class '(gull|tern)' after the limit of 1: raise `limit`"),
        ({}, {"longer_than": 5}, "`longer_than` applies to the words of texts, but images have none"),
    ],
)
def test_invalid_images_are_refused(change: dict, recipe: dict, sentence: str) -> None:
    *others, last = corpus().images
    stated = {"split": last.split, "label": last.label, "pixels": last.pixels, **change}
    some = ImageCorpus([*others, ImageExample(**stated)], ["gull", "tern"])
    with pytest.raises(PlumblineError, match=sentence):
        prepare_images(some, Preparation(**recipe), "some")


def test_more_images_than_published_or_than_a_table_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlumblineError, match="'train' holds 4 images, but only 3 were published"):
        prepare_images(corpus(), Preparation(), "some", {"train": 3})
    monkeypatch.setattr(prepared_images, "MOST_PIXELS", 8 * 36 - 1)
    with pytest.raises(PlumblineError, match="holds 8 images of 6 x 6 pixels, but a table can store no more than 287"):
        prepare_images(corpus(), Preparation(), "some")


def test_a_reader_must_return_the_corpus_of_its_task() -> None:
    with pytest.raises(PlumblineError, match="its task is classification, but it consists of images"):
        prepare_images(corpus(), Preparation(), "some", task="classification")
    assert prepare_images(corpus(), Preparation(), "some", task="image classification").summary["side"] == 6
    texts = Corpus([Example("train", 0, ["a"])], ["gull"])
    with pytest.raises(PlumblineError, match="its task is image classification, but its reader returns texts"):
        prepare(texts, Preparation(), "some", task="image classification")


def test_birds_are_sorted_by_species_and_name(tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "birds/train/.cache").mkdir()
    (tmp_path / "birds/train/gull/._000.png").write_text("of a file manager")
    (tmp_path / "birds/train/gull/notes.txt").write_text("no image")
    found = birds(tmp_path, 0)
    assert found.classes == ["gull", "tern"]
    # Each species of a split one after the other.
    order = sorted(corpus().images, key=lambda p: (list(SPLITS).index(p.split), p.label))
    assert [(p.split, p.label) for p in found.images] == [(p.split, p.label) for p in order]
    for one, other in zip(found.images, order, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_images_of_any_folder_and_format_are_resized(tmp_path: Path) -> None:
    lay_out(tmp_path, folder="mine", form="jpeg")
    wide = Image.fromarray(image(1, 12)[:8])
    wide.convert("L").save(tmp_path / "mine/train/gull/wide.PNG")
    found = image_folder(tmp_path, 0, folder="mine", size=4)
    assert {p.pixels.shape for p in found.images} == {(4, 4, 3)}
    by_hand = np.asarray(wide.convert("L").convert("RGB").resize((4, 4), Image.Resampling.BICUBIC))
    assert any(np.array_equal(p.pixels, by_hand) for p in found.images)
    with pytest.raises(PlumblineError, match=r"wide.PNG' has 12 x 8 pixels, but images must be square; set"):
        image_folder(tmp_path, 0, folder="mine")


def test_faulty_folders_are_reported_in_one_sentence(tmp_path: Path) -> None:
    lay_out(tmp_path)
    file = tmp_path / "birds/val/tern/099.png"
    Image.fromarray(image(0, 7)).save(file)
    with pytest.raises(PlumblineError, match=r"099.png' has 7 x 7 pixels, but others have 6 x 6; set"):
        birds(tmp_path, 0)
    whole = (tmp_path / "birds/val/tern/005.png").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"GIF89a"):
        file.write_bytes(damaged)
        with pytest.raises(PlumblineError, match=r"099.png' is damaged or not an image; replace the file\.$"):
            birds(tmp_path, 0)
    with pytest.raises(PlumblineError, match="`size` is -1"):
        birds(tmp_path, 0, size=-1)
    (tmp_path / "one/train/gull").mkdir(parents=True)
    for split in ("val", "test"):
        (tmp_path / "one" / split).mkdir()
    with pytest.raises(PlumblineError, match="two or more of them, but there is only 'gull'"):
        birds(tmp_path, 0, folder="one")
    with pytest.raises(PlumblineError, match=r"'birds' needs the files 'none/train', 'none/val' and 'none/test'"):
        birds(tmp_path, 0, folder="none")


def test_missing_folders_are_refused_before_any_work(tmp_path: Path) -> None:
    named = {"mine": {"kind": "image-folder", "folder": "p"}}
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


def test_textures_depend_on_the_seed_and_splits_are_independent() -> None:
    first, again, other = textures(Path(), 1, **SMALL), textures(Path(), 1, **SMALL), textures(Path(), 2, **SMALL)
    longer = textures(Path(), 1, **{**SMALL, "train": 20})
    for one, same in zip(first.images, again.images, strict=True):
        assert one.label == same.label and np.array_equal(one.pixels, same.pixels)
    assert not any(np.array_equal(a.pixels, b.pixels) for a, b in zip(first.images, other.images, strict=True))
    tests = [[p.pixels for p in c.images if p.split == "test"] for c in (first, longer)]
    np.testing.assert_array_equal(*tests)
    assert Counter((p.split, p.label) for p in first.images) == {
        ("train", 0): 6, ("train", 1): 6, ("dev", 0): 3, ("dev", 1): 3, ("test", 0): 3, ("test", 1): 3,
    }  # fmt: skip
    assert first.classes == ["disc", "triangle"] and first.images[0].pixels.shape == (32, 32, 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_inside_and_have_the_right_area(shape: str) -> None:
    random = np.random.default_rng(0)
    shares = []
    for _ in range(40):
        drawn = np.random.default_rng(random.integers(2**32))
        share = np.random.default_rng(drawn.bit_generator.seed_seq).uniform()
        cover = _cover(drawn, shape, 96)
        assert not cover[[0, -1]].any() and not cover[:, [0, -1]].any()
        shares.append(cover.mean() / (SMALLEST + (LARGEST - SMALLEST) * share))
    np.testing.assert_allclose(shares, 1, atol=0.03)


def test_backgrounds_have_the_spectrum_of_natural_scenes() -> None:
    """Amplitude decays with the frequency by a power between -0.8 and -1.8, shapes and rounding included."""
    found = [p.pixels.mean(2) for p in textures(Path(), 0, train=60, dev=2, test=2).images if p.split == "train"]
    power = np.mean([np.abs(np.fft.fft2(p - p.mean())) for p in found], axis=0)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(64), np.fft.fftfreq(64)))
    band = (frequency > 0.03) & (frequency < 0.4)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert -1.8 < slope < -0.8


def test_invalid_textures_are_refused() -> None:
    with pytest.raises(PlumblineError, match="`classes` is 6; it must be from 2 to 5"):
        textures(Path(), 0, classes=6)
    with pytest.raises(PlumblineError, match="`side` is 31; shapes need"):
        textures(Path(), 0, side=31)
