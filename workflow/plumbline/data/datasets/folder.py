"""The user's own images: a folder for each class, or one for each split with one for each class."""

from pathlib import Path
from typing import Any

from plumbline.config.own_data import split_of
from plumbline.data.datasets.birds import class_folders, image_files, read_images
from plumbline.data.images import ImageCorpus
from plumbline.data.own_splits import assign_splits
from plumbline.errors import PlumblineError
from plumbline.registry import dataset

ImageFile = tuple[str, int, Path]


@dataset(
    "folder",
    source="your own images",
    licence="that of your images",
    task="image classification",
    required=["path"],
    limits={"size": [0, None], "dev_share": [0, 0.9]},
)
def folder(
    raw: Path,
    seed: int,
    *,
    path: str = "",
    size: int = 0,
    shares: dict[str, float] | None = None,
    dev_share: float = 0.0,
    stratified: bool = True,
) -> ImageCorpus:
    """Your own images: `path` holds a folder for each class, or one for each split with one for each class
    (page *Own data*).

    Options:
        path: Folder of the images.
    """
    files, classes, drawn = list_images(Path(path), seed, shares, dev_share, stratified)
    return ImageCorpus(read_images(files, size), classes, drawn=drawn)


def list_images(
    path: Path, seed: int, shares: dict[str, float] | None, dev_share: float, stratified: bool
) -> tuple[list[ImageFile], list[str], dict[str, Any]]:
    """The images with their splits and classes, the names of classes, and how splits were drawn."""
    names = {entry.name: split_of(entry.name) for entry in sorted(path.iterdir()) if entry.is_dir()}
    is_split = bool(names) and all(names.values())
    folders = {split: path / name for name, split in names.items()} if is_split else {"": path}
    if is_split and len(folders) < len(names):
        raise PlumblineError(f"'{path}' has two folders for one split: {', '.join(names)}; rename or remove one.")
    classes = class_folders(folders)
    files = [
        (split, label, file)
        for split, inside in folders.items()
        for label, class_ in enumerate(classes)
        for file in image_files(inside / class_)
    ]
    given, labels = [split for split, _, _ in files], [label for _, label, _ in files]
    for label, class_ in enumerate(classes):
        if label not in labels:
            raise PlumblineError(
                f"'{path}': the folders of class '{class_}' contain no image (.png, .jpg or .jpeg); add some."
            )
    splits, drawn = assign_splits(given, labels, classes, seed, shares, dev_share, stratified)
    return [(split, label, file) for split, (_, label, file) in zip(splits, files, strict=True)], classes, drawn
