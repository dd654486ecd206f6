"""Peak memory of leave-one-out on long texts at two token budgets, each in a separate process."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import torch
from data import build_evaluator, texts
from sizes import Sizes

from plumbline.attribution.leave_one_out import leave_one_out


def lines(device: str, sizes: Sizes) -> Iterator[str]:
    """One sentence per budget."""
    count, words = sizes.memory
    for budget in sizes.budgets:
        command = [sys.executable, __file__, device, *map(str, (budget, count, words))]
        peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        what = f"leave-one-out, bilstm-tanh, {count} texts of {words} words, {device}, budget {budget:,} tokens"
        yield f"{what}: {peak}"


def main(device: str, budget: int, count: int, words: int) -> None:
    """Print the peak memory, and the part above that of the process and model at rest."""
    torch.set_num_threads(1)
    evaluator = build_evaluator("bilstm-tanh", budget, device)
    leave_one_out(evaluator, texts(1, 20))

    def held() -> float:
        taken = torch.cuda.memory_allocated() if device == "cuda" else psutil.Process().memory_info().rss
        return taken / 2**20

    before, seen, done = held(), [held()], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    leave_one_out(evaluator, texts(count, words, exactly=True))
    done.set()
    watcher.join()
    peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else max(seen)
    print(f"peak {peak:,.0f} MiB, {peak - before:,.0f} MiB above the model at rest")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
