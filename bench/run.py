"""Print one table of ratios of the plain way against ours, measured in this run on this machine.

    python bench/run.py [--only NAME ...] [--devices NAME ...] [--data FOLDER ...] [--epochs N]

`--data` names prepared datasets, such as results/data/sst, for attribution, counterfactual and the training on a GPU;
without it random texts of SST's sizes are used.
"""

import argparse
import os
import platform
from collections.abc import Iterator
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
from data import Task
from timing import Row

GROUPS = {
    "kendall": "kendall: rank correlations, half a minute",
    "flow": "flow: maximum flows, a minute",
    "measures": "measures: leave-one-out and gradients, a minute or two",
    "attribution": "attribution: LIME, integrated gradients and DeepLIFT against Captum, five minutes on a CPU",
    "counterfactual": "counterfactual: permuted and adversarial attention, two minutes",
    "every": "every: each registered measure and protocol, five minutes on a CPU",
    "training": "training: a block of five seeds, a minute or two",
    "adversary": "adversary: nine seeds of adversaries, two minutes",
    "memory": "memory: peaks at two token budgets, a minute",
    "precision": "precision: F1 and tau by arithmetic of training, on a GPU and with --data only",
}


def processor() -> str:
    """The processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def rows(
    groups: list[str], devices: list[str], prepared: list[Path], epochs: int, left_out: list[str]
) -> Iterator[Row]:
    """All lines of the table; what could not be measured is named in `left_out`."""
    if "kendall" in groups:
        yield from kendall.rows()
    if "flow" in groups:
        yield from flow.rows()
    for device in devices:
        if "measures" in groups:
            yield from measures.rows(device)
        if "attribution" in groups:
            yield from attribution.rows(device, prepared)
        if "counterfactual" in groups:
            yield from counterfactual.rows(device, prepared)
        if "every" in groups:
            yield from every.rows(device, left_out)
        if "training" in groups:
            yield from training.rows(device, prepared, epochs)
        if "adversary" in groups:
            yield from adversary.rows(device)


def main() -> None:
    """All benchmarks, one thread on the CPU; on a GPU too where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, default=[], help="prepared datasets, where they are used")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of the training on a GPU")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="; ".join(GROUPS.values()))
    parser.add_argument("--devices", nargs="+", choices=["cpu", "cuda"], help="by default the CPU, and a GPU if any")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available()
    if "cuda" in (arguments.devices or []) and not gpu:
        parser.error("there is no GPU here that PyTorch can use")
    if missing := [str(folder) for folder in arguments.data if not (folder / "embedding.safetensors").exists()]:
        parser.error(f"no prepared dataset in {', '.join(missing)}; run the rules prepare and embed first")
    if arguments.epochs < 2:
        parser.error("--epochs must be 2 or more, since the first epoch is never chosen")
    devices = arguments.devices or (["cpu", "cuda"] if gpu else ["cpu"])
    name = torch.cuda.get_device_name() if gpu else "no GPU"
    print(f"{processor()}, {os.cpu_count()} cores, one thread; {name}; torch {torch.__version__}\n")
    print("| what | plain [s] | ours [s] | ratio | |\n|---|---|---|---|---|")
    left_out: list[str] = []
    for row in rows(arguments.only, devices, arguments.data, arguments.epochs, left_out):
        ratio = row.plain / row.ours
        print(f"| {row.what} | {row.plain:.3f} | {row.ours:.4f} | {ratio:.1f} | {row.note} |", flush=True)
    if left_out:
        print()
        for name in left_out:
            print(f"- left out: {name}", flush=True)
    if "memory" in arguments.only:
        print()
        for device in devices:
            for line in memory.lines(device):
                print(f"- {line}", flush=True)
    if "precision" in arguments.only and gpu:
        print()
        for folder in arguments.data:
            for line in precision.lines(Task.prepared(folder, epochs=arguments.epochs), "cuda"):
                print(f"- {line}", flush=True)


if __name__ == "__main__":
    main()
