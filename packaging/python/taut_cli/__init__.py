"""Starts the program `taut` that this package brought. The program itself is the script beside this one's."""

import os
import subprocess
import sys
from importlib.metadata import distribution


def program():
    """The path of the program, as the installer recorded it."""
    for file in distribution("taut-cli").files or []:
        if file.name in ("taut", "taut.exe"):
            path = os.path.abspath(file.locate())
            if os.path.isfile(path):
                return path
    sys.exit("taut-cli: the program is missing from this installation; install taut-cli again")


def main(name="taut-cli"):
    """On Unix this process becomes the program, so a host that ends it ends the program."""
    path, arguments = program(), [name, *sys.argv[1:]]
    if os.name != "nt":
        os.execv(path, arguments)
    # Windows cannot replace a process. Ctrl-C reaches the program itself.
    with subprocess.Popen(arguments, executable=path) as child:
        while True:
            try:
                sys.exit(child.wait())
            except KeyboardInterrupt:
                continue
