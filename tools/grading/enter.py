"""Inside new namespaces: make everything read-only but one folder, then run a command.

Run by :mod:`tools.grading.sandbox` as ``unshare ... python enter.py DESCRIPTION COMMAND ...``; the
description is JSON with ``box``, the folder that stays writable, and ``hidden``, folders that are
to look empty.
"""

import json
import os
import re
import subprocess
import sys

_KEPT = {"nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime"}


def _mount(*arguments):
    subprocess.run(["mount", *arguments], check=True, stderr=subprocess.DEVNULL)


def _mounts():
    """(place, options) of everything that is mounted; a later one covers an earlier one."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        for line in table:
            fields = line.split(" ")
            place = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[4])
            found[place] = fields[5].split(",")
    return found


def main():
    """Close everything, give up every capability, and become the command."""
    description, command = json.loads(sys.argv[1]), sys.argv[2:]
    box = os.path.realpath(description["box"])
    _mount("--make-rprivate", "/")
    _mount("--bind", box, box)
    for folder in description["hidden"]:
        _mount("-t", "tmpfs", "-o", "size=4k,mode=755", "hidden", os.path.realpath(folder))
    _mount("-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc")
    for place, options in _mounts().items():
        if place in (box, "/proc") or "ro" in options or place.startswith("/proc/"):
            continue
        if not os.path.lexists(place):
            continue
        flags = ",".join(["remount", "bind", "ro", *sorted(_KEPT & set(options))])
        _mount("-o", flags, place)
    os.chdir(box)
    os.execvp(
        "setpriv",
        ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--", *command],
    )


if __name__ == "__main__":
    main()
