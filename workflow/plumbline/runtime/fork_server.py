"""Local jobs run as forks of one process that has imported the slow packages.

Importing torch takes longer than most jobs of a small study. A run on one machine therefore starts a server process,
which imports such packages once; Snakemake's Python scripts run as forks of it. The command that Snakemake starts is
a small client (`fork_client.py`): it sends its streams, its environment and the path of the script, waits, and exits
with the status of the fork. If the client is killed, so is the fork; if the run ends in any way, so do all forks. If
there is no server, the client runs the script in a new process, as Snakemake would.

The server imports no module of a study or of this library besides this one, so a fork always reads current code.
"""

import atexit
import ctypes
import importlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

from plumbline.runtime.fork_client import ALONE, THREADS, receive_request

# Packages of every script, imported before the first job; packages of most studies, imported while no job waits; and
# packages that are imported after a first job has used them.
AT_START = ("snakemake.script", "numpy", "pyarrow.parquet")
WHEN_IDLE = ("torch", "pandas")
AFTER_USE = ("seaborn", "scipy.stats", "transformers.modeling_utils", "captum.attr", "sklearn", "spacy")
# With fewer jobs, the imports of the server take longer than those of the jobs.
FEWEST_JOBS = 5
CLIENT = Path(__file__).with_name("fork_client.py")
# A fork has no thread but the one that forked, and cannot use CUDA if its parent has initialised it. So packages must
# not start threads at import, nor initialise CUDA when they ask whether there is a GPU.
ENVIRONMENT = dict.fromkeys(THREADS, "1") | {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
PR_SET_PDEATHSIG = 1


def server_command(address: str) -> list[str]:
    """The command that runs a server; -P keeps the working folder off the module path."""
    return [sys.executable, "-P", "-m", "plumbline.runtime.fork_server", address]


class ForkServer:
    """The server of a run, controlled by the run's main process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and run Snakemake's Python scripts through it, except those with their own environment.

        Only on Linux: macOS does not allow a fork to use its system libraries.
        """
        if not sys.platform.startswith("linux"):
            return
        from snakemake.script import PythonScript

        folder = tempfile.mkdtemp(prefix="plumbline-")
        address = os.path.join(folder, "socket")
        # The pipe to its standard input is closed when this process ends, however it ends.
        self._process = subprocess.Popen(
            server_command(address), stdin=subprocess.PIPE, env=os.environ | ENVIRONMENT, start_new_session=True
        )
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(self.stop)
        execute_in_process = PythonScript.execute_script

        def execute_script(script: Any, fname: str, edit: bool = False) -> None:
            if script.container_img or script.conda_env or script.env_modules:
                execute_in_process(script, fname, edit)
                return
            client = shlex.join([sys.executable, "-IS", str(CLIENT), address])
            script._execute_cmd("{client} {fname:q}", client=client, fname=fname, is_python_script=True)

        PythonScript.execute_script = execute_script

    def stop(self) -> None:
        """End the server and all forks."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            try:
                self._process.wait(1)
            except subprocess.TimeoutExpired:  # It is importing a package.
                self._process.kill()
                self._process.wait()
            self._process = None


def _uses_cuda() -> bool:
    """Whether a package has initialised CUDA at import, so that forks could not use it."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return bool(cuda and cuda.is_initialized())


class Server:
    """Forks for each client and sends it the exit status of its fork."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(128)
        self._clients: dict[int, socket.socket] = {}
        self._to_import = list(WHEN_IDLE)
        # Forks write the packages that they have imported to one pipe; SIGCHLD writes to the other.
        self._imports, self._imported = os.pipe()
        self._child_ended, wakeup = os.pipe()
        for end in (self._child_ended, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._libc = ctypes.CDLL(None)

    def run(self) -> None:
        """Serve until standard input is closed."""
        for name in AT_START:
            importlib.import_module(name)
        while True:
            forks = {client: pid for pid, client in self._clients.items()}
            watched: list[Any] = [0, self._listener, self._imports, self._child_ended, *forks]
            ready, _, _ = select.select(watched, [], [], 0 if self._to_import else None)
            if 0 in ready:
                break
            if self._imports in ready:
                names = os.read(self._imports, 4096).decode().split()
                self._to_import += [name for name in names if name not in sys.modules]
            if self._child_ended in ready:
                os.read(self._child_ended, 4096)
                self._send_statuses()
            for client in ready:
                # A client sends nothing after its request, so it has ended.
                if client in forks and forks[client] in self._clients:
                    _kill(forks[client])
            if self._listener in ready:
                self._serve(self._listener.accept()[0])
            elif not ready:
                with suppress(ImportError):
                    importlib.import_module(self._to_import.pop(0))
        for pid in list(self._clients):
            _kill(pid)

    def _send_statuses(self) -> None:
        while self._clients:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._clients.pop(pid) as client, suppress(OSError):
                client.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _serve(self, client: socket.socket) -> None:
        try:
            client.settimeout(10)
            body, streams = receive_request(client)
            request = json.loads(body)
        except (OSError, ValueError):
            client.close()
            return
        forked = None if _uses_cuda() else os.fork()
        if forked is None:
            with client, suppress(OSError):
                client.sendall(ALONE)
        elif forked:
            self._clients[forked] = client
        if forked != 0:
            for stream in streams:
                os.close(stream)
            return
        status = 1
        try:
            self._detach(client, streams)
            status = _execute(request["script"], request["folder"], request["environment"])
            if used := [name for name in AFTER_USE if name in sys.modules]:
                os.write(self._imported, f"{' '.join(used)} ".encode())
        finally:
            os._exit(status)

    def _detach(self, client: socket.socket, streams: list[int]) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for own, stream in enumerate(streams):
            os.dup2(stream, own)
            os.close(stream)
        for other in (client, self._listener, *self._clients.values()):
            other.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _execute(script: str, folder: str, environment: dict[str, str]) -> int:
    """Run a script as `python SCRIPT` does; returns its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.argv, sys.path[:0] = [script], [os.path.dirname(script), *paths]
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    status = 0
    try:
        exec(compile(Path(script).read_bytes(), script, "exec"), module.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        # Without the frame of this function.
        traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        status = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return status


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # It may not lead its process group yet.
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    Server(sys.argv[1]).run()
