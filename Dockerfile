# BERTology, live, in a container: JupyterLab on the chapters, without a GPU and without root.
#
#   docker build --tag bertology .
#   docker run --rm --publish 127.0.0.1:8888:8888 bertology     # then open the link it prints
#
# The pages instead of JupyterLab, unpacked into ./html:
#   docker run --rm bertology sh -c 'make book >&2 && tar -cC _build html' | tar -x
#
# Binder builds this file as well, and passes the name and number of its own user.

FROM python:3.11-slim-bookworm AS base
# git: a JupyterHub pulls notebooks with it. make: the book's own commands.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git make \
 && rm -rf /var/lib/apt/lists/*
ARG NB_USER=reader
ARG NB_UID=1000
RUN useradd --create-home --shell /bin/bash --uid "${NB_UID}" "${NB_USER}"
ENV USER="${NB_USER}" \
    HOME="/home/${NB_USER}" \
    PIP_NO_CACHE_DIR=1 \
    UV_NO_CACHE=1
USER ${NB_USER}
WORKDIR ${HOME}

FROM base
ARG NB_UID=1000
# The packages first: they change less often than the book, so they stay in the build's cache.
COPY --chown=${NB_UID}:${NB_UID} Makefile pyproject.toml README.md LICENSE requirements*.txt ./
COPY --chown=${NB_UID}:${NB_UID} tools/setup_env.py tools/
# The package has to be one, if an empty one, for its installation to lead to the real one later.
RUN mkdir bertology_utils \
 && touch bertology_utils/__init__.py \
 && make TORCH=cpu env \
 && .venv/bin/python -m pip install --quiet -r requirements-lab.txt -r requirements-hub.txt
COPY --chown=${NB_UID}:${NB_UID} . .
RUN make notebooks
ENV PATH="${HOME}/.venv/bin:${PATH}"
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--port=8888", "--no-browser", "--notebook-dir=notebooks"]
