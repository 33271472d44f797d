"""Fixtures shared by all tests; the tiny encoders themselves are made in ``tiny.py``."""

import pytest
import torch
from tiny import FAMILIES, TEXTS, tiny_encoder

from bertology_utils.encoder import DEFAULT_MODEL, Encoder, load_encoder

torch.set_num_threads(1)


@pytest.fixture(scope="session", params=FAMILIES)
def any_encoder(request) -> Encoder:
    """Each family in turn. Shared: a test that changes weights must copy the model first."""
    return tiny_encoder(request.param)


@pytest.fixture(scope="session")
def tiny_bert() -> Encoder:
    """A random BERT with MLM and NSP heads, shared by the whole session."""
    return tiny_encoder("bert")


@pytest.fixture(scope="session")
def embedded() -> Encoder:
    """The model shipped in the package."""
    return load_encoder(DEFAULT_MODEL, device="cpu")


@pytest.fixture
def texts() -> list[str]:
    """Four sentences of different lengths."""
    return list(TEXTS)
