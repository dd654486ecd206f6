"""Blocks of seeds, such as `0-4` or `10,50,257`."""

from typing import Any


def blocks_of(value: Any) -> list[str]:
    """Blocks of seeds, of which there may be one alone and which may be numbers."""
    return [str(block) for block in (value if isinstance(value, list) else [value])]


def check_distinct(blocks: list[str]) -> list[str]:
    """Blocks of seeds as they are; one that holds a seed for the second time is refused."""
    seen: set[int] = set()
    for block in blocks:
        for seed in parse_seeds(block):
            if seed in seen:
                raise ValueError(f"seed {seed} stands twice in {blocks}; name each seed once.")
            seen.add(seed)
    return blocks


# A block is a folder, and its seeds are trained in one job; random generators take no larger seeds.
LONGEST_BLOCK, MOST_SEEDS, LARGEST_SEED = 100, 10_000, 2**32 - 1


def parse_seeds(block: str) -> list[int]:
    """The seeds of a block: ``0-4`` is 0 to 4, ``10,50`` is 10 and 50."""
    if len(block) > LONGEST_BLOCK:
        raise ValueError(
            f"the block of seeds '{block[:20]}…' has {len(block)} characters, and its folder's name {LONGEST_BLOCK} at "
            "most; write '0-4' for seeds in a row, or make it several blocks."
        )
    seeds: list[int] = []
    for part in block.split(","):
        bounds = part.split("-")
        if len(bounds) > 2 or not all(bound.isascii() and bound.isdigit() for bound in bounds):
            raise ValueError(f"'{block}' is not a block of seeds; write '0-4' or '10,50,257'.")
        first, last = int(bounds[0]), int(bounds[-1])
        if last < first:
            raise ValueError(f"'{block}' is not a block of seeds; write '0-4' or '10,50,257'.")
        if last > LARGEST_SEED:
            raise ValueError(f"'{block}' holds the seed {last}; the largest is {LARGEST_SEED}.")
        if last - first >= MOST_SEEDS:
            raise ValueError(
                f"'{block}' holds {last - first + 1} seeds; a block may have {MOST_SEEDS}, so make it several."
            )
        seeds += range(first, last + 1)
    return seeds
