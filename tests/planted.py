"""A model whose knowledge is written down, to test measures of knowledge against the truth.

It goes through the same tokenizer, batches and queries as a real one. At the mask it adds up, over
all words of the text, what each of them speaks for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import BertConfig, PreTrainedTokenizerFast

from bertology_utils.encoder import Encoder, new_encoder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class PlantedEncoder(Encoder):
    """An encoder whose masked-word scores come from a table [V, V] instead of its layers."""

    table: Tensor = field(default_factory=lambda: torch.zeros(0))

    def encode(self, batch) -> Tensor:
        """[B, T, V] how often every word occurs in the text, the same at every position."""
        size = len(self.tokenizer)
        counts = torch.zeros(len(batch.input_ids), size)
        counts.scatter_add_(1, batch.input_ids, batch.attention_mask.float())
        return counts[:, None].expand(-1, batch.input_ids.shape[1], -1)

    def mlm_logits(self, hidden: Tensor) -> Tensor:
        self._require("mlm")
        return hidden @ self.table


def planted_encoder(
    texts: Sequence[str], speaks_for: Mapping[str, Mapping[str, float]], name: str = "planted"
) -> PlantedEncoder:
    """A model that knows the words of ``texts`` and the rules ``word -> {answer: weight}``.

    The word "" speaks in every text. Small fixed weights break ties, the same for all texts.
    """
    core = Tokenizer(models.WordLevel({}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = dict.fromkeys(SPECIAL)
    for text in texts:
        plain = core.normalizer.normalize_str(text.replace("[MASK]", " "))
        words |= dict.fromkeys(w for w, _ in core.pre_tokenizer.pre_tokenize_str(plain))
    ids = {word: i for i, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        **{f"{k}_token": f"[{k.upper()}]" for k in ("pad", "unk", "cls", "sep", "mask")},
        model_max_length=64,
    )
    config = BertConfig(
        vocab_size=len(ids), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip
    base = new_encoder(config, tokenizer, name=name, device="cpu")
    table = torch.zeros(len(ids), len(ids))
    table[ids["[CLS]"]] = torch.linspace(1e-3, 0, len(ids))
    for word, answers in speaks_for.items():
        for answer, weight in answers.items():
            table[ids[word.lower() or "[CLS]"], ids[answer.lower()]] += weight
    return PlantedEncoder(base.model, tokenizer, base.device, name, base.trained_heads, table=table)
