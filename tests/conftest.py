"""Settings of all tests."""

import pytest
import torch

# Two test processes with a thread pool each would fight over two cores.
torch.set_num_threads(1)

SENTENCES = [
    "the film was good and the cast was great",
    "a bad plot , a worse ending and a dull cast",
    "where is john ? john went to the kitchen",
    "mary took the unbelievable football there",
]

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "initializer_range": 0.3,
}  # fmt: skip


def save_checkpoint(folder, config, tokenizer, **specials):
    """A whole checkpoint: the model of a config with random weights, and a tokenizer of at most 64 subwords a text."""
    from transformers import AutoModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **specials).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory):
    """The folder of a small RoBERTa with a byte-level tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import RobertaConfig

    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=specials, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=66,
        type_vocab_size=1,
        **SMALL,
    )
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    named = dict(zip(names, specials, strict=True))
    return save_checkpoint(tmp_path_factory.mktemp("roberta"), config, tokenizer, **named)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a small BERT, with token types for second texts and a subword tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for sentence in SENTENCES for letter in sentence} - {" "})
    short = sorted({word for sentence in SENTENCES for word in sentence.split() if 1 < len(word) < 5})
    subwords = [*specials, *letters, *(f"##{letter}" for letter in letters), *short]
    vocabulary = {subword: id_ for id_, subword in enumerate(subwords)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(specials)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=64,
        **SMALL,
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    named = dict(zip(names, specials, strict=True))
    return save_checkpoint(tmp_path_factory.mktemp("bert"), config, tokenizer, **named)
