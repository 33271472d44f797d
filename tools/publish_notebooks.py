"""Commit every chapter's notebook to the branch ``notebooks``, from where Colab opens them.

The working tree, the index and the current branch stay as they are; nothing is pushed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bertology_utils.reproduce.chapters import read_book
from tools.export_notebooks import export, last_costs
from tools.repository import NOTEBOOKS_BRANCH, Repository, read_repository

ROOT = Path(__file__).resolve().parent.parent

_README = """# The chapters of *BERTology, live*, as notebooks

Written from <{url}> by `make publish-notebooks`; changes made here are lost at the next time.
The first cell of a notebook installs what is missing. The licence is MIT.
"""


class PublishError(RuntimeError):
    """The notebooks could not be committed; the message says why."""


def git(root: Path, *arguments: str, text: str = "") -> str:
    """Run git in ``root`` and return what it prints.

    Raises:
        PublishError: git failed; the message is git's own.
    """
    done = subprocess.run(
        ["git", *arguments], cwd=root, input=text, capture_output=True, encoding="utf-8"
    )
    if done.returncode != 0:
        raise PublishError(f"git {arguments[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def commit_folder(root: Path, folder: Path, branch: str, message: str) -> str | None:
    """Make ``branch`` hold exactly the files of ``folder``; return the commit, if there is news.

    The commit follows the branch, here or at ``origin``, and begins a history of its own where
    there is neither.

    Raises:
        PublishError: ``root`` is no repository, or git refuses.
    """
    entries = []
    for path in sorted(folder.iterdir()):
        blob = git(root, "hash-object", "-w", str(path))
        entries.append(f"100644 blob {blob}\t{path.name}\n")
    tree = git(root, "mktree", text="".join(entries))
    parents = []
    for name in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
        found = git(root, "for-each-ref", "--format=%(objectname)", name)
        if found:
            parents = ["-p", found]
            if git(root, "rev-parse", f"{found}^{{tree}}") == tree:
                git(root, "update-ref", f"refs/heads/{branch}", found)
                return None
            break
    commit = git(root, "commit-tree", tree, *parents, "-m", message)
    git(root, "update-ref", f"refs/heads/{branch}", commit)
    return commit


def publish(root: Path, repository: Repository) -> str | None:
    """Commit the notebooks of this checkout; return the commit, or None without any change."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notebooks"
        export(read_book(root), folder, repository, last_costs(root))
        (folder / "README.md").write_text(_README.format(url=repository.url), encoding="utf-8")
        shutil.copyfile(root / "LICENSE", folder / "LICENSE")
        return commit_folder(root, folder, NOTEBOOKS_BRANCH, "Notebooks of the chapters")


def main() -> int:
    """Commit this checkout's notebooks and say how to publish them."""
    try:
        repository = read_repository(ROOT)
        if repository is None:
            print("name the repository first: repository.url in _config.yml", file=sys.stderr)
            return 1
        commit = publish(ROOT, repository)
    except (PublishError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if commit is None:
        print(f"The branch {NOTEBOOKS_BRANCH} already holds these notebooks.")
    else:
        print(f"The branch {NOTEBOOKS_BRANCH} is now at {commit[:10]}.")
    print(f"Publish it with: git push origin {NOTEBOOKS_BRANCH}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
