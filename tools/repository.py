"""Where the book's repository lives, and the addresses that follow from it.

The one place to name it is ``repository`` in ``_config.yml``. Without an address nothing on the
pages leads to a repository, and no launch link is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import yaml

#: The branch that holds the chapters as notebooks; see ``tools.publish_notebooks``.
NOTEBOOKS_BRANCH = "notebooks"

_ADDRESS = re.compile(r"https://(?P<host>github\.com|gitlab\.com)/(?P<path>[\w.-]+(?:/[\w.-]+)+)")


@dataclass(frozen=True)
class LaunchLink:
    """One way to run a notebook elsewhere.

    Attributes:
        service: what the link is called on the page.
        url: where it leads.
        icon: the picture, as the theme names it.
    """

    service: str
    url: str
    icon: str


@dataclass(frozen=True)
class Repository:
    """A public repository with the book in it, and the services that run notebooks from it.

    Attributes:
        host: ``github.com`` or ``gitlab.com``.
        path: owner and name, such as ``someone/bertology``.
        branch: the branch with the sources.
        binder, colab, jupyterhub: addresses of the services; empty where there is none.
    """

    host: str
    path: str
    branch: str
    binder: str = ""
    colab: str = ""
    jupyterhub: str = ""

    @property
    def url(self) -> str:
        """The repository's own address."""
        return f"https://{self.host}/{self.path}"

    @property
    def name(self) -> str:
        """The last part of the address, which is what a clone's folder is called."""
        return self.path.rsplit("/", 1)[1]

    @property
    def requirement(self) -> str:
        """What pip installs to get the package, with what the chapters need besides."""
        return f"bertology_utils[book] @ git+{self.url}@{self.branch}"

    def launch_links(self, notebook: str) -> list[LaunchLink]:
        """Return the links that open a notebook, such as ``02_syntax.ipynb``, elsewhere.

        Binder builds the repository's own Dockerfile, which writes the notebooks. Colab and
        JupyterHub read them from the branch ``notebooks``.
        """
        links = []
        if self.binder:
            provider, path = ("gh", self.path) if self.host == "github.com" else (
                "gl", quote(self.path, safe="")
            )
            place = quote(f"lab/tree/notebooks/{notebook}", safe="")
            branch = quote(self.branch, safe="")
            url = f"{self.binder}/v2/{provider}/{path}/{branch}?urlpath={place}"
            links.append(LaunchLink("Binder", url, "_static/images/logo_binder.svg"))
        if self.colab and self.host == "github.com":
            url = f"{self.colab}/github/{self.path}/blob/{NOTEBOOKS_BRANCH}/{notebook}"
            links.append(LaunchLink("Colab", url, "_static/images/logo_colab.png"))
        if self.jupyterhub:
            query = urlencode(
                {
                    "repo": self.url,
                    "branch": NOTEBOOKS_BRANCH,
                    "urlpath": f"lab/tree/{self.name}/{notebook}",
                }
            )
            url = f"{self.jupyterhub}/hub/user-redirect/git-pull?{query}"
            links.append(LaunchLink("JupyterHub", url, "_static/images/logo_jupyterhub.svg"))
        return links


def read_repository(root: Path) -> Repository | None:
    """Read the address from ``_config.yml``; None where it names none.

    Raises:
        ValueError: the address, or that of a service, is not of a form the links can be made from.
    """
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = settings.get("repository") or {}
    address = (repository.get("url") or "").rstrip("/").removesuffix(".git")
    if not address:
        return None
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise ValueError(
            f"_config.yml: repository.url is {address!r}; it has to be like "
            "https://github.com/OWNER/NAME or https://gitlab.com/OWNER/NAME"
        )
    services = settings.get("launch_buttons") or {}
    addresses = {}
    for service in ("binder", "colab", "jupyterhub"):
        key = "binderhub_url" if service == "binder" else f"{service}_url"
        addresses[service] = (services.get(key) or "").rstrip("/")
        if addresses[service] and not addresses[service].startswith("https://"):
            raise ValueError(f"_config.yml: launch_buttons.{key} has to begin with https://")
    return Repository(match["host"], match["path"], repository.get("branch") or "main", **addresses)
