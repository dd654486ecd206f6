"""Images in one folder per class: the birds of Zhou et al. 2022, or any others in the same layout."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from plumbline.data.images import ImageCorpus, ImageExample
from plumbline.data.sources import declared_files
from plumbline.errors import PlumblineError
from plumbline.registry import dataset
from plumbline.runtime.progress import shown

SUFFIXES = (".png", ".jpg", ".jpeg")


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
    """Images of eight species of birds, in four pairs of similar species (Zhou et al. 2022)."""
    return read_folders(declared_files(__file__, "birds", raw, folder=folder), size)


@dataset(
    "image-folder",
    limits={"size": [0, None]},
    files={"train": "{folder}/train", "dev": "{folder}/val", "test": "{folder}/test"},
    source="your own images",
    licence="that of your images",
    task="image classification",
)
def image_folder(raw: Path, seed: int, *, folder: str = "images", size: int = 0) -> ImageCorpus:
    """Your own images: `folder` holds `train`, `val` and `test`, each with one folder per class."""
    return read_folders(declared_files(__file__, "image-folder", raw, folder=folder), size)


def read_folders(folders: Mapping[str, Path], size: int) -> ImageCorpus:
    """The images of each split's folder, with one folder per class; classes and files are sorted by name."""
    classes = class_folders(folders)
    files = [
        (split, label, path)
        for split, folder in folders.items()
        for label, class_ in enumerate(classes)
        for path in image_files(folder / class_)
    ]
    return ImageCorpus(read_images(files, size), classes)


def class_folders(folders: Mapping[str, Path]) -> list[str]:
    """The names of the folders of classes, sorted; fewer than two are refused."""
    paths = [path for folder in folders.values() for path in folder.iterdir() if path.is_dir()]
    classes = sorted({path.name for path in paths if not path.name.startswith(".")})
    if len(classes) < 2:
        held = f"only '{classes[0]}'" if classes else "none"
        first = next(iter(folders.values()))
        raise PlumblineError(
            f"'{first}' must contain a folder of images for each class, and two or more of them, but there is {held}."
        )
    return classes


def image_files(folder: Path) -> list[Path]:
    """The images in a folder, sorted by name."""
    files = sorted(folder.glob("*"))
    return [path for path in files if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")]


def read_images(files: Sequence[tuple[str, int, Path]], size: int) -> list[ImageExample]:
    """The images of files, each with its split and label, all square and of one size."""
    if size < 0:
        raise PlumblineError(f"`size` is {size}; it must be the side in pixels, or 0 to keep the size of images.")
    images: list[ImageExample] = []
    for split, label, path in shown(files, "read images", "image"):
        pixels = _read(path, size)
        if images and pixels.shape != images[0].pixels.shape:
            side = len(images[0].pixels)
            raise PlumblineError(
                f"'{path}' has {len(pixels)} x {len(pixels)} pixels, but others have {side} x {side}; set the "
                "dataset's option `size` to resize them."
            )
        images.append(ImageExample(split, label, pixels))
    return images


def _read(path: Path, size: int) -> np.ndarray:
    """The pixels [H, H, 3], uint8, of a file."""
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    # Pillow raises these for truncated files and files of other formats.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise PlumblineError(f"'{path}' is damaged or not an image; replace the file.") from None
    if size:
        image = image.resize((size, size), Image.Resampling.BICUBIC)
    if image.width != image.height:
        raise PlumblineError(
            f"'{path}' has {image.width} x {image.height} pixels, but images must be square; set the dataset's option "
            "`size` to resize them."
        )
    return np.asarray(image)
