"""Scripts that run as forks of the fork server must behave like processes of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from plumbline.runtime.fork_client import THREADS
from plumbline.runtime.fork_server import (
    AFTER_USE,
    AT_START,
    CLIENT,
    ENVIRONMENT,
    WHEN_IDLE,
    ForkServer,
    server_command,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a fork server on Linux only")

LIBRARY = str(CLIENT.parents[2])
SLEEPER = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[tuple[subprocess.Popen, str]]:
    """The process and address of a server that tests share."""
    yield from started(tmp_path_factory.mktemp("server"))


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """A server for a test that ends it."""
    yield from started(tmp_path)


def started(folder: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    address = str(folder / "socket")
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": LIBRARY}
    process = subprocess.Popen(server_command(address), stdin=subprocess.PIPE, env=environment, start_new_session=True)
    wait_for(Path(address).exists)
    yield process, address
    process.stdin.close()
    process.wait(20)


def wait_for(happened, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def client(address: str, script: Path, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-IS", str(CLIENT), address, str(script)],
        cwd=script.parent,
        env=os.environ | dict.fromkeys(THREADS, "1") | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def written(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(text)
    return folder / "script.py"


ENDS = {
    "well": ("print('output')", 0, "output\n", ""),
    "with a status": ("import sys; print('output'); sys.exit(3)", 3, "output\n", ""),
    "with a sentence": ("import sys; sys.exit('a fault')", 1, "", "a fault\n"),
    "with an error": ("raise ValueError('broken')", 1, "", "ValueError: broken\n"),
    "by a signal": ("import os; os.kill(os.getpid(), 9)", -9, "", ""),
    "at once": ("import os; os._exit(4)", 4, "", ""),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_client_ends_as_its_script_does(server, tmp_path, how):
    text, status, out, error = ENDS[how]
    running = client(server[1], written(tmp_path / "job", text))
    streams = running.communicate(timeout=60)
    assert (running.returncode, streams[0]) == (status, out) and streams[1].endswith(error)


def test_a_traceback_names_only_the_script(server, tmp_path):
    script = written(tmp_path / "job", "def fail():\n    raise ValueError('broken')\nfail()\n")
    _, error = client(server[1], script).communicate(timeout=60)
    assert f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>' in error


def test_a_script_has_the_clients_folder_environment_and_module_path(server, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "beside.py").write_text("WORD = 'beside'")
    text = "import os, sys\nfrom beside import WORD\nprint(os.getcwd(), os.environ['OWN'], sys.argv, __name__, WORD)"
    script = written(tmp_path / "job", text)
    output, _ = client(server[1], script, OWN="mine").communicate(timeout=60)
    assert output == f"{tmp_path / 'job'} mine ['{script}'] __main__ beside\n"


def test_scripts_run_at_the_same_time_and_packages_are_imported(server, tmp_path):
    script = written(tmp_path / "job", "import sys\nprint('numpy' in sys.modules)\n")
    running = [client(server[1], script) for _ in range(5)]
    assert [one.communicate(timeout=60)[0] for one in running] == ["True\n"] * 5


def test_packages_of_a_script_are_imported_for_the_next_without_threads_or_cuda(server, tmp_path):
    """A script uses them by name only; importing them there too would take as long again."""
    text = f"import sys\nprint(all(name in sys.modules for name in {[*AT_START, *WHEN_IDLE, *AFTER_USE]}))\n"
    text += "cuda = getattr(sys.modules.get('torch'), 'cuda', None)\n"
    text += "print(cuda and (cuda.is_initialized() or cuda._is_in_bad_fork()))\n"
    text += f"sys.modules |= dict.fromkeys(set({AFTER_USE}) - set(sys.modules), sys)\n"
    script = written(tmp_path / "job", text)

    def there() -> bool:
        every, cuda = client(server[1], script).communicate(timeout=180)[0].split()
        assert cuda in ("None", "False")
        return every == "True" and cuda == "False"

    wait_for(there, 180)
    assert psutil.Process(server[0].pid).num_threads() == 1


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def forked(folder: Path) -> psutil.Process:
    wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    return psutil.Process(int((folder / "pid").read_text()))


def test_a_fork_is_killed_with_its_client(server, tmp_path):
    running = client(server[1], written(tmp_path / "job", SLEEPER))
    fork = forked(tmp_path / "job")
    running.kill()
    wait_for(lambda: ended(fork))
    assert client(server[1], written(tmp_path / "other", "print(1)")).communicate(timeout=60)[0] == "1\n"


@pytest.mark.parametrize("how", ["the run ends", "the server is killed"])
def test_all_forks_end_with_the_run(own_server, tmp_path, how):
    running = client(own_server[1], written(tmp_path / "job", SLEEPER))
    fork = forked(tmp_path / "job")
    own_server[0].stdin.close() if how == "the run ends" else own_server[0].kill()
    assert running.wait(20) == 1
    wait_for(lambda: ended(fork))


def test_a_server_in_which_a_package_has_initialised_cuda_forks_no_script(tmp_path):
    """A stand-in for torch on a machine with a GPU; forks of such a process could not use it."""
    text = "import runpy, sys, types\ntorch = sys.modules['torch'] = types.ModuleType('torch')\n"
    text += "torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)\n"
    text += "runpy.run_module('plumbline.runtime.fork_server', run_name='__main__')\n"
    address, environment = str(tmp_path / "socket"), os.environ | ENVIRONMENT | {"PYTHONPATH": LIBRARY}
    command = [sys.executable, "-P", "-c", text, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True) as process:
        wait_for(Path(address).exists)
        for _ in range(2):
            running = client(address, written(tmp_path / "job", "import sys\nprint('pyarrow' in sys.modules)\n"))
            assert running.communicate(timeout=60)[0] == "False\n" and running.returncode == 0
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.parametrize("other", [{}, {"OMP_NUM_THREADS": "2"}], ids=["no server", "two threads"])
def test_otherwise_a_script_runs_in_a_process_of_its_own(request, tmp_path, other):
    address = request.getfixturevalue("server")[1] if other else str(tmp_path / "nobody")
    running = client(address, written(tmp_path / "job", "import sys\nprint('numpy' in sys.modules)\n"), **other)
    assert running.communicate(timeout=60)[0] == "False\n" and running.returncode == 0


def test_a_server_that_is_importing_is_not_waited_for():
    """Otherwise the end of a short run would wait for an unneeded import of torch."""
    run = ForkServer()
    run._process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE, start_new_session=True
    )
    process, began = run._process, time.monotonic()
    run.stop()
    assert process.poll() is not None and time.monotonic() - began < 20
