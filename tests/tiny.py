"""Tiny random encoders of every family, with vocabularies made here: no files needed."""

import string

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from bertology_utils.encoder import Encoder, new_encoder

FAMILIES = ("bert", "roberta", "distilbert", "electra", "electra-generator")

TEXTS = (
    "The cat sat on the mat.",
    "The keys to the cabinet are on the table, aren't they?",
    "Dogs bark.",
    "A well-known doctor said that the old cats near the dogs sleep.",
)

_WORDS = """the a cat cats dog dogs sat sleep sleeps bark barks on mat key keys to cabinet is are
table they aren t said that old near doctor well known not of in and he she it was were good bad
movie city capital paris france river bank money""".split()
_PIECES = ["##s", "##ed", "##ing", "##ly", "##er", "##est"]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece_tokenizer() -> PreTrainedTokenizerFast:
    """BERT's uncased WordPiece with a vocabulary of about 150 entries."""
    letters = list(string.ascii_lowercase + string.digits)
    vocabulary = _SPECIAL + letters + ["##" + c for c in letters]
    vocabulary += list(".,;:!?'\"()[]-/") + _WORDS + _PIECES
    ids = {piece: i for i, piece in enumerate(dict.fromkeys(vocabulary))}
    core = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def bytelevel_tokenizer() -> PreTrainedTokenizerFast:
    """RoBERTa's byte-level BPE, trained on the words above."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    core.train_from_iterator([*TEXTS, *(f"the {word} of" for word in _WORDS)] * 3, trainer)
    core.post_processor = processors.RobertaProcessing(
        ("</s>", core.token_to_id("</s>")),
        ("<s>", core.token_to_id("<s>")),
        trim_offsets=True,
        add_prefix_space=False,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=64,
    )


def tiny_encoder(family: str, *, n_layers: int = 3, n_heads: int = 4, seed: int = 0) -> Encoder:
    """A random encoder of ``family``: 32 wide, dropout on in training mode, 64 positions."""
    tokenizer = bytelevel_tokenizer() if family == "roberta" else wordpiece_tokenizer()
    common = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if family == "distilbert":
        config = DistilBertConfig(
            **common, n_layers=n_layers, n_heads=n_heads, dim=32, hidden_dim=64,
            max_position_embeddings=64,
        )  # fmt: skip
    else:
        shape = {
            "num_hidden_layers": n_layers,
            "num_attention_heads": n_heads,
            "hidden_size": 32,
            "intermediate_size": 64,
            "max_position_embeddings": 64,
            # The default spread is so small at this width that all attention is uniform.
            "initializer_range": 0.2,
        }
        if family == "bert":
            config = BertConfig(**common, **shape)
        elif family == "roberta":
            shape["max_position_embeddings"] = 66
            config = RobertaConfig(**common, **shape, type_vocab_size=1)
        else:
            config = ElectraConfig(**common, **shape, embedding_size=16)
            if family == "electra-generator":
                config.architectures = ["ElectraForMaskedLM"]
    if family == "distilbert":
        config.initializer_range = 0.2
    encoder = new_encoder(config, tokenizer, seed=seed, name=f"tiny-{family}", device="cpu")
    # Under fresh biases (0) and LayerNorms (1), many wrong formulas agree with right ones.
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in encoder.model.named_parameters():
            if parameter.ndim == 1:
                centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(centre + 0.1 * noise)
    return encoder
