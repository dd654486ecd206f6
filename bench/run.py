"""Print a table that compares plain implementations with ours, measured in this run on this machine.

    python bench/run.py [--only NAME ...] [--devices NAME ...] [--data FOLDER ...] [--epochs N] [--tiny]
                        [--checkpoint FOLDER --subwords FOLDER ...]

`--data` names prepared datasets, such as results/data/sst, for attribution, counterfactual and training on a GPU; by
default random texts of SST's sizes are used. `--checkpoint` names a pre-trained encoder and `--subwords` datasets in
its subwords, such as results/data/sst/plain/subwords/minilm, for the effect of precision on its explanations. `--tiny`
runs everything once on a few texts, as a smoke test.
"""

import argparse
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

import adversary
import attribution
import counterfactual
import every
import flow
import kendall
import measures
import memory
import precision
import torch
import training
import transformer
from data import Task
from sizes import FULL, TINY, Sizes
from timing import Row

# The times are those of a CPU.
GROUPS = {
    "kendall": "kendall: rank correlations, 20 seconds",
    "flow": "flow: maximum flows, 40 seconds",
    "measures": "measures: leave-one-out and gradients, 45 seconds",
    "attribution": "attribution: LIME, integrated gradients and DeepLIFT compared with Captum, a minute",
    "counterfactual": "counterfactual: permuted and adversarial attention, 20 seconds",
    "every": "every: each registered measure and protocol, two minutes",
    "training": "training: a block of five seeds, half a minute",
    "adversary": "adversary: nine seeds of adversaries, 35 seconds",
    "memory": "memory: peaks at two token budgets, 45 seconds",
    "transformer": "transformer: fine-tuning and explanations of RoBERTa's shape, only on a GPU",
    "precision": "precision: F1 and tau by training precision, only on a GPU and with --data",
}


def processor() -> str:
    """The processor's name, if the system provides it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def run_groups(
    groups: list[str],
    devices: list[str],
    sizes: Mapping[str, Sizes],
    prepared: list[Path],
    epochs: int,
    checkpoint: Path | None = None,
    subwords: list[Path] = [],  # noqa: B006
) -> Iterator[Row | str]:
    """The rows of the table, and the lines below it."""
    if "kendall" in groups:
        yield from kendall.rows(sizes["cpu"])
    if "flow" in groups:
        yield from flow.rows(sizes["cpu"])
    for device in devices:
        if "measures" in groups:
            yield from measures.rows(device, sizes[device])
        if "attribution" in groups:
            yield from attribution.rows(device, sizes[device], prepared)
        if "counterfactual" in groups:
            yield from counterfactual.rows(device, sizes[device], prepared)
        if "every" in groups:
            yield from every.rows(device, sizes[device])
        if "training" in groups:
            yield from training.rows(device, sizes[device], prepared, epochs)
        if "adversary" in groups:
            yield from adversary.rows(device, sizes[device])
        if "memory" in groups:
            yield from memory.lines(device, sizes[device])
        if "transformer" in groups and (device == "cuda" or sizes is TINY):
            yield from transformer.rows(device, sizes[device], checkpoint, subwords)
        if "precision" in groups and device == "cuda":
            for folder in prepared:
                yield from precision.lines(Task.prepared(folder, epochs=epochs), device, sizes[device])


def main(given: list[str] | None = None) -> None:
    """Run all benchmarks, on one CPU thread and on a GPU if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, default=[], help="folders of prepared datasets")
    parser.add_argument("--checkpoint", type=Path, help="a folder with a pre-trained encoder")
    parser.add_argument("--subwords", nargs="+", type=Path, default=[], help="folders of datasets in its subwords")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of the training on a GPU")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="; ".join(GROUPS.values()))
    parser.add_argument("--devices", nargs="+", choices=["cpu", "cuda"], help="by default the CPU, and a GPU if any")
    parser.add_argument("--tiny", action="store_true", help="a few texts, once; the times are meaningless")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available()
    if "cuda" in (arguments.devices or []) and not gpu:
        parser.error("PyTorch finds no GPU")
    if missing := [str(folder) for folder in arguments.data if not (folder / "embedding.safetensors").exists()]:
        parser.error(f"no prepared dataset in {', '.join(missing)}; run the rules prepare and embed first")
    if arguments.epochs < 2:
        parser.error("--epochs must be 2 or more, since the first epoch is never selected")
    devices = arguments.devices or (["cpu", "cuda"] if gpu else ["cpu"])
    name = torch.cuda.get_device_name() if gpu else "no GPU"
    print(f"{processor()}, {os.cpu_count()} cores, one thread; {name}; torch {torch.__version__}\n")
    print("| what | plain [s] | ours [s] | ratio | |\n|---|---|---|---|---|")
    sizes, below = TINY if arguments.tiny else FULL, []
    given_data = arguments.data, arguments.epochs, arguments.checkpoint, arguments.subwords
    for row in run_groups(arguments.only, devices, sizes, *given_data):
        if isinstance(row, str):
            below.append(row)
            continue
        what, plain, ours, note = row
        print(f"| {what} | {plain:.3f} | {ours:.4f} | {plain / ours:.1f} | {note} |", flush=True)
    print("", *(f"- {line}" for line in below), sep="\n")


if __name__ == "__main__":
    main()
