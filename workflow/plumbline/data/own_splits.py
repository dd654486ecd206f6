"""Random splits of the user's own data: all three, or dev out of train."""

from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.config.own_data import SHARES, split_of
from plumbline.data.corpus import SPLITS, split_by_seed
from plumbline.errors import PlumblineError

# Keeps the draw of dev out of train apart from that of all splits.
_DEV_DRAW = 1


def assign_splits(
    given: Sequence[str],
    labels: Sequence[int],
    classes: Sequence[str],
    seed: int,
    shares: Mapping[str, float] | None,
    dev_share: float,
    stratified: bool,
    every_class: bool = True,
) -> tuple[list[str], dict[str, Any]]:
    """The split of each instance, and how it was drawn. `given` holds the splits that the data states, or empty
    strings; without dev, it is drawn from train as `dev_share` says. Drawn splits need rows of `every_class`."""
    if not any(given):
        if dev_share:
            raise PlumblineError(
                "`dev_share` draws dev from train, but the data has no splits; name the column of the splits in "
                "`split`, or set `shares` to draw all three."
            )
        full = {split_of(name): share for name, share in (shares or SHARES).items()}
        splits = draw([*labels], {split: full[split] for split in SPLITS}, [seed], stratified)
        if every_class:
            check_every_class(splits, labels, classes)
        return splits, {"shares": full, "seed": seed, "stratified": stratified}
    if shares is not None:
        raise PlumblineError("`shares` draws splits, but the data has its own; remove `shares`.")
    if "dev" in given or not dev_share:
        _check_given(given, bool(dev_share))
        return [*given], {}
    splits = [*given]
    training = [k for k, split in enumerate(given) if split == "train"]
    part = {"train": 1 - dev_share, "dev": dev_share}
    for k, split in zip(
        training, draw([labels[k] for k in training], part, [seed, _DEV_DRAW], stratified), strict=True
    ):
        splits[k] = split
    _check_given(splits, True)
    return splits, {"dev_share": dev_share, "seed": seed, "stratified": stratified}


def draw(labels: Sequence[int], shares: Mapping[str, float], seed: Sequence[int], stratified: bool) -> list[str]:
    """The random split of each instance; if stratified, each class is split in these shares, by a generator of its own,
    so that the draw of one class does not depend on the size of another."""
    if not stratified:
        return split_by_seed(len(labels), shares, seed)
    splits = [""] * len(labels)
    members_of: dict[int, list[int]] = {}
    for k, label in enumerate(labels):
        members_of.setdefault(label, []).append(k)
    for label, members in members_of.items():
        for k, split in zip(members, split_by_seed(len(members), shares, [*seed, label]), strict=True):
            splits[k] = split
    return splits


def _check_given(splits: Sequence[str], drawn: bool) -> None:
    for split in SPLITS:
        if split not in splits:
            remedy = "" if split != "dev" or drawn else ", or set `dev_share: 0.1` to draw it from train"
            raise PlumblineError(f"No row belongs to the split '{split}'; add some{remedy}.")


def check_every_class(splits: Sequence[str], labels: Sequence[int], classes: Sequence[str]) -> None:
    """Refuse a class that is too rare to be in every split."""
    found = set(zip(splits, labels, strict=True))
    for label, name in enumerate(classes):
        for split in SPLITS:
            if (split, label) not in found:
                raise PlumblineError(
                    f"Class '{name}' has {list(labels).count(label)} rows, none of which was drawn for '{split}'; "
                    "leave out the class or merge it with another in `classes`, add rows, or change `shares`."
                )
