"""Own images: a folder for each class, or split/class."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plumbline.data.datasets.folder import folder
from plumbline.errors import PlumblineError


def save(path: Path, colour: int, side: int = 4) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), colour, dtype=np.uint8)).save(path)


@pytest.fixture
def classes(tmp_path) -> Path:
    """Twenty images of each class; the colour of each is its number."""
    for offset, class_ in enumerate(("cat", "dog")):
        for number in range(20):
            save(tmp_path / class_ / f"{number:02}.png", 100 * offset + number)
    return tmp_path


def read(path: Path, seed: int = 0, **options):
    return folder(path, seed, path=str(path), **options)


def fault(path: Path, **options) -> str:
    with pytest.raises(PlumblineError) as error:
        read(path, **options)
    return str(error.value)


def test_a_folder_for_each_class_is_split_at_random(classes):
    corpus = read(classes)
    assert corpus.classes == ["cat", "dog"]
    counts = Counter((image.split, image.label) for image in corpus.images)
    assert counts == {(s, label): n for s, n in (("train", 16), ("dev", 2), ("test", 2)) for label in (0, 1)}
    assert all(image.pixels[0, 0, 0] // 100 == image.label for image in corpus.images)
    assert corpus.drawn == {"shares": {"train": 0.8, "dev": 0.1, "test": 0.1}, "seed": 0, "stratified": True}
    splits = [[image.split for image in read(classes, seed).images] for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


def test_a_folder_for_each_split(tmp_path):
    for colour, split in enumerate(("train", "valid", "test")):
        for class_ in ("cat", "dog"):
            save(tmp_path / split / class_ / "0.png", colour)
    corpus = read(tmp_path, size=2)
    found = {(image.split, image.label, int(image.pixels[0, 0, 0])) for image in corpus.images}
    assert found == {(split, label, k) for k, split in enumerate(("train", "dev", "test")) for label in (0, 1)}
    assert corpus.images[0].pixels.shape == (2, 2, 3) and corpus.drawn == {}
    assert "`shares` draws splits, but the data has its own; remove `shares`." in fault(
        tmp_path, shares={"train": 0.8, "dev": 0.1, "test": 0.1}
    )
    (tmp_path / "valid").rename(tmp_path / "aside")
    (tmp_path / "aside" / "cat").rename(tmp_path / "train" / "bird")
    (tmp_path / "aside" / "dog" / "0.png").unlink()
    (tmp_path / "aside" / "dog").rmdir()
    (tmp_path / "aside").rmdir()
    assert fault(tmp_path).startswith("No row belongs to the split 'dev'; add some, or set `dev_share: 0.1`")


def test_faults(classes):
    (classes / "bird").mkdir()
    assert fault(classes) == (
        f"'{classes}': the folders of class 'bird' contain no image (.png, .jpg or .jpeg); add some."
    )
    (classes / "bird").rmdir()
    save(classes / "cat" / "large.png", 0, side=5)
    assert "set the dataset's option `size`" in fault(classes)
    (classes / "cat" / "large.png").write_text("no image")
    assert "is damaged or not an image" in fault(classes)
    assert "for each class, and two or more of them, but there is none." in fault(classes / "cat")
    for name in ("val", "dev", "train"):
        save(classes / "splits" / name / "a" / "0.png", 0)
    assert "has two folders for one split: dev, train, val; rename or remove one." in fault(classes / "splits")
