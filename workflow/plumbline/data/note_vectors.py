"""Word vectors trained on all discharge summaries of MIMIC-III, as Jain & Wallace (2019) did."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from plumbline.data.datasets.mimic import clean_notes, discharge_notes
from plumbline.data.embeddings import train_word2vec
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import shown
from plumbline.store import replacing

DIMENSIONS = 300


class _Texts:
    """A file of one text per line, reread on each of gensim's iterations, with a progress bar."""

    def __init__(self, path: Path, count: int) -> None:
        self.path, self.count = path, count

    def __iter__(self) -> Iterator[list[str]]:
        from gensim.models.word2vec import LineSentence

        return shown(LineSentence(str(self.path)), "word vectors", "text", self.count)


def write_note_vectors(notes: Path, target: Path, dimensions: int = DIMENSIONS, seed: int = 0) -> None:
    """Train vectors on the discharge summaries in NOTEEVENTS.csv and write them in word2vec's text format.

    The cleaned texts go through a file, so that memory holds no more than the vocabulary. It is next to `target` and
    readable by its owner only, because access to the notes is restricted.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        texts = Path(folder, "texts.txt")
        count = 0
        with texts.open("w", encoding="utf-8") as file:
            for words in clean_notes(note.text for note in discharge_notes(notes)):
                file.write(" ".join(words) + "\n")
                count += 1
        vectors = train_word2vec(_Texts(texts, count), dimensions, seed)
    if not len(vectors):
        raise PlumblineError(
            f"Word vectors cannot be trained on '{notes}' because no word occurs twice in its {count} discharge "
            "summaries: download the complete file of MIMIC-III."
        )
    row = " ".join(["%.6g"] * dimensions)
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(f"{len(vectors)} {dimensions}\n")
        for word in shown(vectors.index_to_key, "write", "word"):
            file.write(f"{word} {row % tuple(vectors[word])}\n")
