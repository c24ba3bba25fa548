#!/usr/bin/env python3
"""`mlx chat` on a terminal: Ctrl-C clears the line, twice in turn it ends the conversation, and during
an answer it ends the answer and keeps the conversation. What is typed is UTF-8 in any locale.

usage: chat_interrupt.py MLX MODEL
"""

import os
import pty
import re
import select
import signal
import sys
import time

CTRL_C = b"\x03"
SECONDS = 120


class Terminal:
    """A conversation on a pseudo-terminal."""

    def __init__(self, *options):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(sys.argv[1], [sys.argv[1], "chat", "--device", "cpu", "--model", sys.argv[2], *options])

    def read(self, seconds):
        """Whether anything came; the end of the program is an OSError."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        self.text += os.read(self.fd, 65536).decode(errors="replace")
        return True

    def wait_for(self, pattern):
        """Reads until the pattern came, and takes it and what is before it away."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.text)):
            if time.monotonic() > end:
                raise SystemExit(f"no {pattern!r} in {self.text!r}")
            try:
                self.read(1)
            except OSError:
                raise SystemExit(f"the end instead of {pattern!r}: {self.text!r}") from None
        before, self.text = self.text[:found.start()], self.text[found.end():]
        return before

    def type(self, keys):
        os.write(self.fd, keys)

    def wait_for_end(self):
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                self.read(1)
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass
        status = os.waitpid(self.pid, 0)[1]
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != 0:
            raise SystemExit(f"ended with {status}: {self.text!r}")


def clears_line():
    t = Terminal("--max-tokens", "2")
    t.wait_for("> $")
    t.type(b"/nonsense")
    t.wait_for("/nonsense")
    t.type(CTRL_C)
    t.wait_for("ends the conversation")
    t.wait_for("> $")
    t.type(b"/help\r") # would be /nonsense/help
    t.wait_for("/reset forgets the conversation")
    t.wait_for("> $")
    t.type(CTRL_C) # a line came in between, so this is the first one again
    t.wait_for("ends the conversation")
    t.wait_for("> $")
    t.type(CTRL_C)
    t.wait_for_end()


def ends_answer():
    t = Terminal("--max-tokens", "400", "--stop", "no such text")
    t.wait_for("> $")
    t.type(b"Tell me a long story about a fox\r")
    t.wait_for(r"fox\r?\n")
    t.wait_for(r"\w+ \w+ \w+")
    t.type(CTRL_C)
    t.wait_for("> $")
    t.type(b"/help\r") # Ctrl-C was the answer's, not the conversation's
    t.wait_for("/reset forgets the conversation")
    t.wait_for("> $")
    t.type(CTRL_C)
    t.wait_for("ends the conversation")
    t.wait_for("> $")
    t.type(b"/exit\r")
    t.wait_for_end()


def takes_any_character():
    for locale in ("C", "C.UTF-8", "no such locale"):
        os.environ["LC_ALL"] = locale
        t = Terminal()
        t.wait_for("> $")
        t.type("/Grüße,你好🙂\r".encode())
        t.wait_for("/Grüße,你好🙂 is no command")
        t.wait_for("> $")
        t.type(b"\x04") # Ctrl-D
        t.wait_for_end()


def main():
    clears_line()
    ends_answer()
    takes_any_character()
    print("Ctrl-C clears the line, ends the answer, and twice in turn the conversation")


if __name__ == "__main__":
    main()
