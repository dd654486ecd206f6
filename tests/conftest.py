"""Settings of all tests."""

import torch

# Two test processes with a thread pool each would fight over two cores.
torch.set_num_threads(1)
