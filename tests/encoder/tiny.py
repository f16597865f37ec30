"""A model of one's own that no hub has: a BERT of one layer with random weights, saved as sentence-transformers do."""

import json
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

DIMENSIONS = 96
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def build(folder: Path, *, seed: int = 1, dimensions: int = DIMENSIONS) -> Path:
    """Write a model to ``folder`` and return it: words are spelt letter by letter, so that like texts are near."""
    bert = folder.with_name(f"{folder.name}-bert")
    bert.mkdir(parents=True)
    words = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (bert / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(bert / "vocab.txt")).save_pretrained(bert)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=dimensions,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=2 * dimensions,
        max_position_embeddings=256,
    )
    BertModel(config).save_pretrained(bert)
    transformer = Transformer(str(bert))
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder))
    assert json.loads((folder / "modules.json").read_text())
    return folder
