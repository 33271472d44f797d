"""Create .venv with the pinned packages, or do nothing when it is already right.

With the argument ``cpu``, PyTorch comes without its gigabytes of CUDA.

Every make target runs this first, with whatever Python was found, so the file keeps to the
standard library and to syntax that an old Python can still parse: an old one must be able to
say in one line that it is too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "complete.txt")
# Fetches PyTorch's builds without CUDA, whose address pip would have to be told.
UV = "uv==0.13.9"
SOURCES = ("requirements.txt", "pyproject.toml", os.path.join("tools", "setup_env.py"))


def fail(line):
    """End with one line on stderr and no traceback."""
    sys.stderr.write(line + "\n")
    sys.exit(1)


def wanted_stamp():
    """Return a digest of everything the environment depends on, the folder it lives in included.

    A virtual environment holds absolute paths, so a moved checkout needs a new one.
    """
    digest = hashlib.sha256()
    digest.update(("%s %s\n" % (sys.version, ROOT)).encode("utf-8"))
    for name in SOURCES:
        with open(os.path.join(ROOT, name), "rb") as handle:
            digest.update(handle.read())
    return digest.hexdigest()


def found_stamp():
    """Return the stamp of the last complete installation, or None if there is none that runs."""
    if not os.path.isfile(STAMP) or subprocess.call([PYTHON, "-c", ""]) != 0:
        return None
    with open(STAMP) as handle:
        return handle.read().strip()


def pip(*arguments):
    """Run the environment's own pip; end with one line when it fails."""
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install"] + list(arguments)
    if subprocess.call(command, cwd=ROOT) != 0:
        fail("The packages could not be installed (see above). Run the same command to try again.")


def create():
    """Build the virtual environment from nothing."""
    if os.path.isdir(VENV):
        shutil.rmtree(VENV)
    if subprocess.call([sys.executable, "-m", "venv", VENV]) != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        fail(
            "%s cannot create a virtual environment; on Debian or Ubuntu install python3-venv."
            % sys.executable
        )


def install_torch_without_cuda():
    """Install the pinned PyTorch in its build for processors, so that pip finds it there."""
    with open(os.path.join(ROOT, "requirements.txt")) as handle:
        pin = [line.strip() for line in handle if line.startswith("torch==")][0]
    pip("--quiet", UV)
    command = [PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, "--no-deps"]
    if subprocess.call(command + ["--quiet", "--torch-backend=cpu", pin], cwd=ROOT) != 0:
        fail("PyTorch without CUDA could not be installed (see above).")


def install(stamp, torch):
    """Install the pins and the package; the stamp is written last, so it means 'complete'."""
    if found_stamp() is None:
        # An installation that was interrupted may have left half-written packages behind.
        create()
    else:
        os.remove(STAMP)
    print("Installing the pinned packages into .venv (first time: a few minutes) ...")
    sys.stdout.flush()
    if torch == "cpu":
        install_torch_without_cuda()
    pip("--progress-bar", "off", "--quiet", "-r", "requirements.txt")
    # The build backend is pinned too, hence no isolated build that would fetch another one.
    pip("--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")
    with open(STAMP + ".new", "w") as handle:
        handle.write(stamp + "\n")
    os.rename(STAMP + ".new", STAMP)


def main():
    if sys.version_info[:2] < OLDEST:
        fail(
            "BERTology, live needs Python %d.%d or newer, but %s is Python %d.%d; "
            "run: make PYTHON=/path/to/a/newer/python3 ..."
            % (OLDEST + (sys.executable,) + tuple(sys.version_info[:2]))
        )
    if sys.platform == "win32":
        fail("BERTology, live builds on Linux and macOS; on Windows use WSL.")
    torch = sys.argv[1] if len(sys.argv) > 1 else ""
    if torch not in ("", "cpu"):
        fail("TORCH is %s; it can be cpu, or empty for PyTorch's standard build." % torch)
    import fcntl

    try:
        lock = open(os.path.join(ROOT, ".venv.lock"), "w")
    except EnvironmentError as error:
        if found_stamp() == wanted_stamp():
            return  # a checkout that can only be read, and needs nothing
        fail("%s cannot be written: %s" % (ROOT, error.strerror))
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = wanted_stamp()
        if found_stamp() != stamp:
            install(stamp, torch)


if __name__ == "__main__":
    main()
