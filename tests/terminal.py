"""An emulated terminal of some columns and rows, and its screen."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import unicodedata

# Styles, and whether the cursor is shown, change nothing that is read here.
_SIGN = re.compile(r"\x1b\[(?:(\d*)([AJK])|[\d;]*m|\?25[hl])|\x1b|.", re.DOTALL)


class Terminal:
    """Reads lines that wrap and scroll, carriage returns, cursor up, and the erasure of lines or what follows."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self._rest = b""

    def feed(self, written: bytes) -> None:
        """Process output, which may end within a character or a sequence."""
        text = (self._rest + written).decode("utf-8", errors="surrogateescape")
        cut = re.search(r"(\x1b(\[[\d;?]*)?|[\udc80-\udcff]+)\Z", text)
        self._rest = cut[0].encode("utf-8", errors="surrogateescape") if cut else b""
        for sign in _SIGN.finditer(text[: cut.start()] if cut else text):
            number = int(sign[1] or (1 if sign[2] == "A" else 0)) if sign[2] else 0
            if sign[2] == "A":
                # The cursor stops at the top of the screen; what has scrolled away is out of reach.
                self.row = max(self.row - number, len(self.rows) - self.height, 0)
            elif sign[2] == "J":
                assert number == 0
                del self.rows[self.row + 1 :], self.rows[self.row][self.column :]
            elif sign[2] == "K":
                del self.rows[self.row][0 if number == 2 else self.column :]
            elif not sign[0].startswith("\x1b["):
                self._put(sign[0])

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        elif character.isprintable():
            wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + wide > self.width:
                self._down()
                self.column = 0
            row = self.rows[self.row]
            row += " " * (self.column + wide - len(row))
            row[self.column : self.column + wide] = [character, *[""] * (wide - 1)]
            self.column += wide

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def everything(self) -> list[str]:
        """All lines, also those that have scrolled away, without empty ones at the end."""
        lines = ["".join(row).rstrip() for row in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def lines(self) -> list[str]:
        """The lines on the screen."""
        first = max(0, len(self.rows) - self.height)
        return self.everything()[first:]


class Pty:
    """A pseudo-terminal: processes write to `slave`."""

    def __init__(self, width: int, height: int) -> None:
        self.master, self.slave = pty.openpty()
        self.seen = Terminal(width, height)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def __enter__(self) -> "Pty":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.master)
        os.close(self.slave)

    def read(self) -> list[str]:
        """The lines on the screen after all output so far."""
        while select.select([self.master], [], [], 0.05)[0]:
            self.seen.feed(os.read(self.master, 1 << 16))
        return self.seen.lines()
