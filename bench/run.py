"""Print one table of ratios of the plain way against ours, measured in this run on this machine."""

import os
import platform

import kendall
import measures
import torch


def processor() -> str:
    """The processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    """All benchmarks, one thread."""
    torch.set_num_threads(1)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"{processor()}, {os.cpu_count()} cores, one thread; {device}; torch {torch.__version__}\n")
    print("| what | plain [s] | ours [s] | ratio |\n|---|---|---|---|")
    for benchmark in (kendall, measures):
        for row in benchmark.rows():
            print(f"| {row.what} | {row.plain:.3f} | {row.ours:.4f} | {row.plain / row.ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
