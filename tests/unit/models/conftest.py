"""Small checkpoints of each family of encoders."""

from typing import Any

import pytest
import torch

from plumbline.conformance.checkpoints import save_checkpoint

SPECIALS = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
DEBERTA: dict[str, Any] = {
    "relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
    "pooler_hidden_size": 16,
}  # fmt: skip
# Small models of each family, with the options in which their kind differs from BERT.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "albert": ("albert", {"embedding_size": 8}),
    "bert": ("bert", {}),
    "big_bird": ("big_bird", {}),
    "camembert": ("camembert", {"pad_token_id": 1}),
    "data2vec-text": ("data2vec-text", {"pad_token_id": 1}),
    "deberta": ("deberta", DEBERTA),
    "deberta-v3": (
        "deberta-v2",
        {**DEBERTA, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    ),
    "distilbert": ("distilbert", {"dim": 16, "n_heads": 2, "n_layers": 2, "hidden_dim": 32}),
    "electra": ("electra", {"embedding_size": 8}),
    "ernie": ("ernie", {}),
    "eurobert": ("eurobert", {**SPECIALS, "num_key_value_heads": 2}),
    "modernbert": ("modernbert", {**SPECIALS, "local_attention": 6}),
    "modernbert-mean": ("modernbert", {**SPECIALS, "classifier_pooling": "mean"}),
    "mpnet": ("mpnet", {"pad_token_id": 1}),
    "nomic_bert": ("nomic_bert", {}),
    "roberta": ("roberta", {"pad_token_id": 1}),
    "roberta-prelayernorm": ("roberta-prelayernorm", {"pad_token_id": 1}),
    "roformer": ("roformer", {"embedding_size": 16}),
    "xlm-roberta": ("xlm-roberta", {"pad_token_id": 1}),
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """The folder of a small checkpoint of a family."""

    def make(family: str) -> str:
        folder = tmp_path_factory.mktemp(family)
        torch.manual_seed(0)
        kind, options = FAMILIES[family]
        save_checkpoint(folder, kind, **{"pad_token_id": 0, **options})
        return str(folder)

    return make
