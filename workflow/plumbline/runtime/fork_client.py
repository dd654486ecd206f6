"""Run a script in a fork of the run's fork server: `python -IS fork_client.py SOCKET SCRIPT`.

Every job waits for this module, so it imports next to nothing. `plumbline.runtime.fork_server` is the other side.
"""

import os
import signal
import socket
import sys

# The server runs with one thread; a script that requests more runs in a new process.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "GOTO_NUM_THREADS")
STREAMS = (0, 1, 2)
# The server's answer to a script that it cannot run.
ALONE = b"alone"
# Digits of the byte count at the start of a request.
HEADER = 8


def send_request(address: str, script: str) -> socket.socket | None:
    """Send the server a script with this process's streams, folder and environment; None if there is no server."""
    import json

    request = {"script": script, "folder": os.getcwd(), "environment": dict(os.environ)}
    body = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        socket.send_fds(connection, [b"%*d" % (HEADER, len(body))], STREAMS)
        connection.sendall(body)
    except OSError:
        return None
    return connection


def receive_request(connection: socket.socket) -> tuple[bytes, list[int]]:
    """The body of a request and the client's streams."""
    header, streams, _, _ = socket.recv_fds(connection, HEADER, len(STREAMS))
    body, size = b"", int(header)
    while len(body) < size:
        received = connection.recv(size - len(body))
        if not received:
            raise OSError("the client closed the connection")
        body += received
    return body, streams


def main() -> None:
    """Run the script in a fork and exit with its status."""
    # Ctrl-C ends the client, and with it the fork, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    address, script = sys.argv[1:]
    one_thread = all(os.environ.get(name, "1") == "1" for name in THREADS)
    connection = send_request(address, script) if one_thread else None
    # The server sends nothing if the run has ended.
    answer = ALONE if connection is None else connection.recv(16) or b"1"
    if answer == ALONE:
        os.execv(sys.executable, [sys.executable, script])
    status = int(answer)
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
