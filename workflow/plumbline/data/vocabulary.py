"""Words and their ids."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

PAD, UNK, SOS, EOS, MASK = range(5)
SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>", "<mask>")


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, the five special tokens first, and the number of documents with each."""

    words: list[str]
    document_frequency: list[int]

    @cached_property
    def ids(self) -> dict[str, int]:
        """Ids of the words of texts. Special tokens are left out, so a text that spells one cannot produce it."""
        return {word: id_ for id_, word in enumerate(self.words) if id_ >= len(SPECIALS)}


def build_vocabulary(
    texts: Iterable[Iterable[str]], minimum_document_frequency: int, always: Iterable[str] = ()
) -> Vocabulary:
    """The words with the minimum document frequency and those of `always`; by frequency, then alphabetical."""
    frequency = Counter(word for tokens in texts for word in set(tokens))
    known = {word for word, count in frequency.items() if count >= minimum_document_frequency} | set(always)
    words = sorted(known - set(SPECIALS), key=lambda word: (-frequency[word], word))
    return Vocabulary([*SPECIALS, *words], [0] * len(SPECIALS) + [frequency[word] for word in words])


def encode(tokens: Iterable[str], ids: Mapping[str, int]) -> list[int]:
    """The ids of a text, between SOS and EOS; unknown words are UNK."""
    return [SOS, *(ids.get(word, UNK) for word in tokens), EOS]
