"""Blocks of seeds, such as `0-4` or `10,50,257`."""

from itertools import pairwise
from typing import Any


def list_blocks(value: Any) -> list[str]:
    """Seed blocks as strings, from a list or a single block. A plain number may be meant as a number of seeds."""
    if isinstance(value, int) and value > 1:
        raise ValueError(f"{value} is one seed; write '0-{value - 1}' for {value} seeds, or ['{value}'] for this one.")
    return [str(block) for block in (value if isinstance(value, list) else [value])]


def check_distinct(blocks: list[str]) -> list[str]:
    """The blocks themselves; a seed that occurs twice is refused."""
    seen: set[int] = set()
    for block in blocks:
        for seed in parse_seeds(block):
            if seed in seen:
                raise ValueError(f"seed {seed} occurs twice; list each seed once.")
            seen.add(seed)
    return blocks


# A block names a folder, and one job trains all its seeds; random generators accept no larger seeds.
LONGEST_BLOCK, MOST_SEEDS, LARGEST_SEED = 100, 10_000, 2**32 - 1


def parse_seeds(block: str) -> list[int]:
    """The seeds of a block: ``0-4`` is 0 to 4, ``10,50`` is 10 and 50."""
    if len(block) > LONGEST_BLOCK:
        raise ValueError(
            f"the block of seeds '{block[:20]}…' has {len(block)} characters, but may have at most {LONGEST_BLOCK}; "
            "write '0-4' for consecutive seeds, or split it into several blocks."
        )
    seeds: list[int] = []
    for part in block.split(","):
        bounds = part.split("-")
        valid = len(bounds) <= 2 and all(bound.isascii() and bound.isdigit() for bound in bounds)
        if not valid or int(bounds[-1]) < int(bounds[0]):
            raise ValueError(f"'{block}' is not a block of seeds; write '0-4' or '10,50,257'.")
        first, last = int(bounds[0]), int(bounds[-1])
        if last > LARGEST_SEED:
            raise ValueError(f"'{block}' holds the seed {last}; the largest is {LARGEST_SEED}.")
        if last - first >= MOST_SEEDS:
            raise ValueError(
                f"'{block}' holds {last - first + 1} seeds, but may hold at most {MOST_SEEDS}; split it into several "
                "blocks."
            )
        seeds += range(first, last + 1)
    return seeds


def cut_block(block: str, most: int | None) -> list[str]:
    """A block cut into as few as possible of at most `most` seeds, whose sizes differ by at most one; a block that is
    small enough stays as written."""
    seeds = parse_seeds(block)
    if most is None or len(seeds) <= most:
        return [block]
    number = -(-len(seeds) // most)
    bounds = [-(-len(seeds) * i // number) for i in range(number + 1)]
    return [_block_of(seeds[start:stop]) for start, stop in pairwise(bounds)]


def _block_of(seeds: list[int]) -> str:
    """The block of some seeds; consecutive ones are a range."""
    if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))
