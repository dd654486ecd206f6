"""Compiled kernels are kept for later jobs, and done without where they cannot be compiled."""

import pytest
import torch.cuda._utils

from plumbline.runtime.kernels import cache_folder, load_kernels


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """A compiler that notes what it compiles; loading a binary returns it."""
    compiled = []

    def compile_(source, name, capability, nvcc_options):
        compiled.append((source, name, capability, nvcc_options))
        return b"binary of " + source.encode(), name

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda._utils, "_nvrtc_compile", compile_)
    monkeypatch.setattr(torch.cuda._utils, "_cuda_load_module", lambda binary, names: dict.fromkeys(names, binary))
    return compiled


def test_a_source_is_compiled_once_for_all_jobs(compiler):
    for _ in range(2):
        assert load_kernels("code", ["a", "b"], {"H": 3}, "trainings") == dict.fromkeys("ab", b"binary of code")
    assert compiler == [("code", "a", "90", ["-DH=3"])]
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


def test_what_cannot_be_compiled_is_done_without(compiler, monkeypatch):
    def refuse(*arguments, **options):
        raise RuntimeError("no compiler\nmore")

    monkeypatch.setattr(torch.cuda._utils, "_nvrtc_compile", refuse)
    with pytest.warns(UserWarning, match="a CUDA kernel cannot be compiled, so trainings are slower: no compiler$"):
        assert load_kernels("code", ["a"], {}, "trainings") is None
