"""Pictures in folders of their classes: the birds of Zhou et al. 2022, or any others that lie like them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from plumbline.data.images import ImageCorpus, ImageExample
from plumbline.data.sources import declared_files
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

FORMS = (".png", ".jpg", ".jpeg")


@dataset(
    "birds",
    limits={"size": [0, None]},
    files={"train": "{folder}/train", "dev": "{folder}/val", "test": "{folder}/test"},
    source="https://github.com/YilunZhou/feature-attribution-evaluation (image_saliency/bird_dataset)",
    licence="research use; the photographs are their photographers'",
    task="image classification",
    counts={"train": 7971, "dev": 796, "test": 797},
)
def birds(raw: Path, seed: int, *, folder: str = "birds", size: int = 0) -> ImageCorpus:
    """Pictures of eight species of birds, which form four pairs that are hard to tell apart (Zhou et al. 2022).

    `size` is how many pixels pictures are made wide and high, by Pillow's bicubic filter; 0 leaves them as they are.
    """
    return read_folders(declared_files(__file__, "birds", raw, folder=folder), size)


@dataset(
    "pictures",
    limits={"size": [0, None]},
    files={"train": "{folder}/train", "dev": "{folder}/val", "test": "{folder}/test"},
    source="your own pictures",
    licence="that of your pictures",
    task="image classification",
)
def pictures(raw: Path, seed: int, *, folder: str = "pictures", size: int = 0) -> ImageCorpus:
    """Any pictures that lie in folders `train`, `val` and `test` of the folder named, each with a folder for a class.

    `size` as for birds; without it they must be square and of one size already.
    """
    return read_folders(declared_files(__file__, "pictures", raw, folder=folder), size)


def read_folders(folders: Mapping[str, Path], size: int) -> ImageCorpus:
    """The pictures of each split's folder, in which a folder is a class; classes and files come sorted by name."""
    if size < 0:
        raise PlumblineError(f"`size` is {size}; it must be the pixels of a row, or 0 to leave pictures as they are.")
    classes = sorted({path.name for folder in folders.values() for path in folder.iterdir() if _is_class(path)})
    if len(classes) < 2:
        held = f"only '{classes[0]}'" if classes else "none"
        raise PlumblineError(
            f"'{folders['train']}' must hold a folder of pictures for each of two or more classes, and there is {held}."
        )
    files = [
        (split, label, path)
        for split, folder in folders.items()
        for label, class_ in enumerate(classes)
        for path in sorted((folder / class_).glob("*"))
        if path.suffix.lower() in FORMS and not path.name.startswith(".")
    ]
    found: list[ImageExample] = []
    for split, label, path in shown(files, "read pictures", "picture"):
        pixels = _read(path, size)
        if found and pixels.shape != found[0].pixels.shape:
            raise PlumblineError(
                f"'{path}' has {len(pixels)} x {len(pixels)} pixels and others have {len(found[0].pixels)} x "
                f"{len(found[0].pixels)}; set the dataset's option `size`."
            )
        found.append(ImageExample(split, label, pixels))
    return ImageCorpus(found, classes)


def _is_class(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _read(path: Path, size: int) -> np.ndarray:
    """The bytes [H, H, 3] of a file."""
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    # What Pillow raises for files of some forms that break off or hold something else.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise PlumblineError(f"'{path}' is damaged or no picture: get it again.") from None
    if size:
        image = image.resize((size, size), Image.Resampling.BICUBIC)
    if image.width != image.height:
        raise PlumblineError(
            f"'{path}' has {image.width} x {image.height} pixels, and pictures must be square; set the dataset's "
            "option `size`, to which they are then brought."
        )
    return np.asarray(image)
