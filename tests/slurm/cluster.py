"""A real SLURM cluster on one Debian machine, for tests.

    python tests/slurm/cluster.py start FOLDER
    python tests/slurm/cluster.py stop FOLDER

Munge, MariaDB, slurmdbd, slurmctld and four slurmd run as root on loopback, with all their files in the folder. Outside
of it there is one link, by which SLURM's commands find the cluster. Packages that are missing are installed and stay.
"""

import argparse
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from plumbline.errors import PlumblineError

LINK = Path("/etc/slurm/slurm.conf")
MARK = "# A cluster for tests, written by tests/slurm/cluster.py"
NODES = {"n1": "cpu", "n2": "cpu", "n3": "gpu", "n4": "gpu"}
PACKAGES = [
    "munge", "mariadb-server", "slurmdbd", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
]  # fmt: skip

# Nodes claim more processors and memory than there are; a job over its memory is killed within seconds, one over its
# time within half a minute.
SLURM = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munged.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=1
KillWait=2
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounting}
AccountingStoragePass={folder}/munged.socket
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
NodeName=DEFAULT CPUs=8 RealMemory=32000
"""

ACCOUNTING = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munged.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={accounting}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=root
StorageLoc=accounting
"""

# Slurmdbd asks for the long wait; what tests record need not survive a crash of the machine.
DATABASE = """\
[mariadbd]
datadir={folder}/database
socket={folder}/mariadbd.socket
pid-file={folder}/mariadbd.pid
log-error={folder}/mariadbd.log
bind-address=127.0.0.1
port={database}
innodb-lock-wait-timeout=900
innodb-flush-log-at-trx-commit=0
innodb-log-file-size=64M
"""


def why_not() -> str | None:
    """The reason why no cluster can be started here; None if one can."""
    if not shutil.which("apt-get"):
        return "it needs Debian, as its packages come from apt-get"
    if os.geteuid() != 0:
        return "it needs root"
    if not LINK.exists():
        return None
    if LINK.is_symlink() and LINK.read_text().startswith(MARK):
        return f"one is up already; stop it with: python tests/slurm/cluster.py stop {LINK.readlink().parent}"
    return f"{LINK} belongs to another cluster and stays as it is"


def start(folder: Path) -> float:
    """Start the cluster, with its files in a new or empty folder. Returns the seconds it took."""
    begun = time.monotonic()
    if reason := why_not():
        raise PlumblineError(f"no SLURM cluster is started: {reason}")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise PlumblineError(f"no SLURM cluster is started: {folder} is not empty; name a new folder")
    _install()
    with ExitStack() as undo:
        undo.callback(stop, folder)
        _configure(folder)
        for name in DAEMONS:
            start_daemon(folder, name)
            if name == "slurmdbd":
                for entry in (
                    "add cluster tests",
                    "add account tests",
                    "add user root account=tests",
                    "modify user root set defaultaccount=tests",
                ):
                    _output("sacctmgr", "--immediate", "--quiet", *entry.split())
        _wait_for(
            "all nodes", lambda: len(_output("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()) == len(NODES)
        )
        _output("srun", "--time=1", "true")
        undo.pop_all()
    return time.monotonic() - begun


def stop(folder: Path) -> None:
    """End all jobs and daemons of the cluster, and remove its folder and the link."""
    written = folder / "slurm.conf"
    if written.is_symlink() or not written.exists() or not written.read_text().startswith(MARK):
        raise PlumblineError(f"{folder} holds no SLURM cluster for tests; name the folder that it was started with")
    if LINK.is_symlink() and LINK.readlink() == written:
        with suppress(PlumblineError):
            _output("scancel", "--user=root")
            _wait_for("the end of all jobs", lambda: not _output("squeue", "--noheader"))
        LINK.unlink()
    for name in reversed(DAEMONS):
        stop_daemon(folder, name)
    # Where a node was set down, no one ends what ran on it.
    for process in job_processes():
        process.kill()
    shutil.rmtree(folder)


def job_processes(job: str = "") -> list[psutil.Process]:
    """The processes of the cluster's jobs, or of one of them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment = process.environ()
            if environment.get("SLURM_CLUSTER_NAME") == "tests" and job in ("", environment["SLURM_JOB_ID"]):
                found.append(process)
    return found


def start_daemon(folder: Path, name: str) -> None:
    """Start one of the daemons and wait until it answers."""
    command, answer = DAEMONS[name]
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    _output(*(part.format(folder=folder) for part in command), env=environment)
    _wait_for(name, lambda: _output(*(part.format(folder=folder) for part in answer)) is not None)


def stop_daemon(folder: Path, name: str) -> None:
    """Stop one of the daemons, if it runs, and wait until it has ended."""
    with suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
        process = psutil.Process(int((folder / f"{name}.pid").read_text()))
        process.terminate()
        # One that has ended may be kept as a zombie by whoever should reap it.
        _wait_for(f"the end of {name}", lambda: process.status() == psutil.STATUS_ZOMBIE)


# Each daemon's command and one that it must answer, in the order in which they start.
DAEMONS = {
    "munged": (
        [
            "munged", "--force", "--socket={folder}/munged.socket", "--key-file={folder}/munged.key",
            "--pid-file={folder}/munged.pid", "--log-file={folder}/munged.log", "--seed-file={folder}/munged.seed",
        ],
        ["munge", "--no-input", "--socket={folder}/munged.socket"],
    ),
    "mariadbd": (
        ["setsid", "--fork", "mariadbd", "--defaults-file={folder}/mariadbd.conf", "--user=root"],
        ["mariadb", "--no-defaults", "--user=root", "--socket={folder}/mariadbd.socket", "--execute=SELECT 1"],
    ),
    "slurmdbd": (["slurmdbd"], ["sacctmgr", "--noheader", "show", "cluster"]),
    "slurmctld": (["slurmctld"], ["scontrol", "ping"]),
    **{f"slurmd.{node}": (["slurmd", "-N", node], ["true"]) for node in NODES},
}  # fmt: skip


def _install() -> None:
    """Install the packages that are missing, without starting the services in them."""
    command = ["dpkg-query", "--show", "--showformat=${Package}:${db:Status-Status}\n", *PACKAGES]
    found = subprocess.run(command, capture_output=True, text=True).stdout.split()
    missing = [package for package in PACKAGES if f"{package}:installed" not in found]
    if not missing:
        return
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        _output("apt-get", "update", "--quiet=2", env=quiet)
        _output(
            "apt-get",
            "install",
            "--yes",
            "--option=DPkg::Lock::Timeout=300",
            "--quiet=2",
            "--no-install-recommends",
            *missing,
            env=quiet,
        )
    finally:
        if ours:
            policy.unlink()


def _configure(folder: Path) -> None:
    """Write all configurations, the key and an empty database, and set the link."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3 + len(NODES))]
        database, accounting, controller, *ports = [one.getsockname()[1] for one in sockets]
    host = socket.gethostname().partition(".")[0]
    values = dict(folder=folder, host=host, database=database, accounting=accounting, controller=controller)
    gpus = [node for node, partition in NODES.items() if partition == "gpu"]
    slurm = [MARK, SLURM.format(**values).rstrip()]
    slurm += [
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}{' Gres=gpu:2' * (node in gpus)}"
        for node, port in zip(NODES, ports, strict=True)
    ]
    for name in ("cpu", "gpu"):
        nodes = ",".join(node for node, partition in NODES.items() if partition == name)
        slurm.append(f"PartitionName={name} Nodes={nodes} MaxTime=12:00:00 Default={'YES' if name == 'cpu' else 'NO'}")
    (folder / "slurm.conf").write_text("\n".join(slurm) + "\n")
    (folder / "gres.conf").write_text(
        "".join(f"NodeName={node} Name=gpu File={folder}/{node}.gpu[0-1]\n" for node in gpus)
    )
    for node in gpus:
        for i in range(2):
            # SLURM wants a device for each GPU, and looks no further: here another /dev/null.
            os.mknod(folder / f"{node}.gpu{i}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (folder / "slurmdbd.conf").touch(0o600)
    (folder / "slurmdbd.conf").write_text(ACCOUNTING.format(**values))
    (folder / "mariadbd.conf").write_text(DATABASE.format(**values))
    (folder / "munged.key").touch(0o600)
    (folder / "munged.key").write_bytes(secrets.token_bytes(1024))
    (folder / "state").mkdir()
    _output(
        "mariadb-install-db",
        f"--defaults-file={folder}/mariadbd.conf",
        "--user=root",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    )
    LINK.parent.mkdir(exist_ok=True)
    LINK.unlink(missing_ok=True)
    LINK.symlink_to(folder / "slurm.conf")


def _output(*command: str, env: dict[str, str] | None = None) -> str:
    """The output of a command."""
    done = subprocess.run(command, env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=600)
    if done.returncode:
        raise PlumblineError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _wait_for(what: str, happened: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition; a command that fails meanwhile is retried."""
    end = time.monotonic() + seconds
    while True:
        try:
            if happened():
                return
            reason = "it is not so"
        except PlumblineError as error:
            reason = str(error)
        if time.monotonic() > end:
            raise PlumblineError(f"waited {seconds:.0f} s for {what} of the SLURM cluster in vain: {reason}")
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    chosen = parser.parse_args()
    try:
        if chosen.action == "start":
            print(f"A SLURM cluster is up after {start(chosen.folder):.1f} s.")
        else:
            stop(chosen.folder)
    except PlumblineError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
