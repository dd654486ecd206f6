"""Compiled kernels are kept for later jobs, and done without where they cannot be compiled."""

from pathlib import Path

import pytest
import torch.cuda._utils

from plumbline.runtime.kernels import cache_folder, load_kernels


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """A compiler that notes what it compiles; loading a binary returns it."""
    compiled = []

    def compile_(source, name, nvcc_options):
        compiled.append((source, name, nvcc_options))
        return b"binary of " + source.encode(), name

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda._utils, "_nvrtc_compile", compile_)
    monkeypatch.setattr(torch.cuda._utils, "_cuda_load_module", lambda binary, names: dict.fromkeys(names, binary))
    return compiled


def test_a_source_is_compiled_once_for_all_jobs(compiler):
    for _ in range(2):
        assert load_kernels("code", ["a", "b"], {"H": 3}, "trainings") == dict.fromkeys("ab", b"binary of code")
    assert compiler == [("code", "a", ["-DH=3"])]
    assert [path.read_bytes() for path in cache_folder().iterdir()] == [b"binary of code"]


def test_other_code_macros_or_gpus_are_compiled_anew(compiler, monkeypatch):
    load_kernels("code", ["a"], {"H": 3}, "trainings")
    load_kernels("other code", ["a"], {"H": 3}, "trainings")
    load_kernels("code", ["a"], {"H": 4}, "trainings")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    load_kernels("code", ["a"], {"H": 3}, "trainings")
    assert len(compiler) == len(list(cache_folder().iterdir())) == 4


def test_without_a_folder_for_it_nothing_is_kept(compiler, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert load_kernels("code", ["a"], {}, "trainings") == {"a": b"binary of code"}


def test_without_a_home_nothing_is_kept(compiler, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert cache_folder() is None
    assert load_kernels("code", ["a"], {}, "trainings") == {"a": b"binary of code"}


def test_a_damaged_file_is_compiled_and_written_again(compiler, monkeypatch):
    def load(binary, names):
        if binary == b"damaged":
            raise RuntimeError("CUDA error: device kernel image is invalid")
        return dict.fromkeys(names, binary)

    monkeypatch.setattr(torch.cuda._utils, "_cuda_load_module", load)
    load_kernels("code", ["a"], {}, "trainings")
    (file,) = cache_folder().iterdir()
    file.write_bytes(b"damaged")
    assert load_kernels("code", ["a"], {}, "trainings") == {"a": b"binary of code"}
    assert len(compiler) == 2 and [path.read_bytes() for path in cache_folder().iterdir()] == [b"binary of code"]


@pytest.mark.parametrize(
    "error", [RuntimeError("no compiler\nmore"), TypeError("no compiler"), ValueError("no compiler")]
)
@pytest.mark.parametrize("step", ["_nvrtc_compile", "_cuda_load_module"])
def test_what_cannot_be_compiled_or_loaded_is_done_without(compiler, monkeypatch, error, step):
    def refuse(*arguments, **options):
        raise error

    monkeypatch.setattr(torch.cuda._utils, step, refuse)
    with pytest.warns(UserWarning, match="a CUDA kernel cannot be compiled, so trainings are slower: no compiler$"):
        assert load_kernels("code", ["a"], {}, "trainings") is None


def test_shared_memory_is_set_and_done_without_if_there_is_too_little(compiler, monkeypatch):
    class Kernel:
        def set_shared_memory_config(self, size):
            self.size = size
            if size > 100:
                raise RuntimeError("exceeds device limit")

    monkeypatch.setattr(torch.cuda._utils, "_cuda_load_module", lambda _, names: {name: Kernel() for name in names})
    kernels = load_kernels("code", ["a", "b"], {}, "trainings", {"b": 100})
    assert kernels["b"].size == 100 and not hasattr(kernels["a"], "size")
    with pytest.warns(UserWarning, match="trainings are slower: exceeds device limit"):
        assert load_kernels("code", ["a", "b"], {}, "trainings", {"b": 101}) is None
