"""The archives that can be downloaded. Imported while the Snakefile is parsed, so it imports nothing heavy."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Archive:
    """One published archive: its mirrors, its checksum and the target path of each member.

    `urls` are mirrors of the same bytes, tried in this order. `checksum` is ``algorithm:digest``; where none is
    published, later downloads must match the first. `files` maps paths below the raw folder to members of the archive:
    ``folder/`` is a whole folder, and the empty string the downloaded file itself. `fallback` is another archive of the
    same files, used if no mirror has this one.
    """

    name: str
    urls: tuple[str, ...]
    files: Mapping[str, str]
    checksum: str = ""
    size: int | None = None
    fallback: "Archive | None" = None

    def is_folder(self, path: str) -> bool:
        """Whether this path receives a whole folder."""
        return self.files[path].endswith("/")

    def missing(self, raw: Path) -> list[str]:
        """The paths that do not exist below the raw folder."""
        return [path for path in self.files if not (raw / path).exists()]

    def sources(self) -> Iterator["Archive"]:
        """This archive, then its fallbacks."""
        yield self
        if self.fallback:
            yield from self.fallback.sources()


AG_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/{}/data/ag_news_csv/{}.csv"
AG_NEWS_COMMITS = ("master", "555590db4219b1243abb1918effd6a7425a2d75f")
BABI_TASKS = ("qa1_single-supporting-fact", "qa2_two-supporting-facts", "qa3_three-supporting-facts")


def _below(folder: str, members: Iterable[str]) -> dict[str, str]:
    """Members that keep their path below a folder."""
    return {f"{folder}/{member}": member for member in members}


BABI_FILES = _below(
    "babi", (f"tasks_1-20_v1-2/en-10k/{task}_{split}.txt" for task in BABI_TASKS for split in ("train", "test"))
)

_ALL = [
    Archive(
        "sst",
        (
            "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
            "https://cache.julialang.org/https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
        ),
        _below("sst", (f"trees/{split}.txt" for split in ("train", "dev", "test"))),
        "sha256:5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
        789_539,
    ),
    Archive(
        "imdb",
        (
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz",
        ),
        {f"imdb/aclImdb/{split}": f"aclImdb/{split}/" for split in ("train", "test")},
        "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        84_125_825,
    ),
    Archive(
        "20news",
        ("https://ndownloader.figshare.com/files/5975967", "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz"),
        {f"20news-bydate/20news-bydate-{split}": f"20news-bydate-{split}/" for split in ("train", "test")},
        "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        14_464_277,
    ),
    Archive(
        "agnews_train",
        tuple(AG_NEWS.format(commit, "train") for commit in AG_NEWS_COMMITS),
        {"agnews/train.csv": ""},
        "sha256:76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
        29_470_338,
    ),
    Archive(
        "agnews_test",
        tuple(AG_NEWS.format(commit, "test") for commit in AG_NEWS_COMMITS),
        {"agnews/test.csv": ""},
        "sha256:521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
        1_857_427,
    ),
    Archive(
        "snli",
        ("https://nlp.stanford.edu/projects/snli/snli_1.0.zip",),
        _below("snli", (f"snli_1.0/snli_1.0_{split}.jsonl" for split in ("train", "dev", "test"))),
        "sha256:afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        94_550_081,
    ),
    Archive(
        "mnli",
        ("https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip",),
        _below("mnli", (f"multinli_1.0/multinli_1.0_{split}.jsonl" for split in ("train", "dev_matched"))),
        "sha256:049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
        226_850_426,
    ),
    Archive(
        "xnli",
        ("https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip", "https://cims.nyu.edu/~sbowman/xnli/XNLI-1.0.zip"),
        _below("xnli", ["XNLI-1.0/xnli.test.tsv"]),
        "sha256:4ba1d5e1afdb7161f0f23c66dc787802ccfa8a25a3ddd3b165a35e50df346ab1",
        17_865_352,
    ),
    Archive(
        "quora",
        ("http://qim.fs.quoracdn.net/quora_duplicate_questions.tsv",),
        {"quora/quora_duplicate_questions.tsv": ""},
        "sha256:b3350dbb1d98db1f5abca85d736ba514bf4da253fae53939303d79fe921ec7c8",
        58_176_133,
    ),
    Archive(
        "babi",
        ("http://www.thespermwhale.com/jaseweston/babi/tasks_1-20_v1-2.tar.gz",),
        BABI_FILES,
        "sha256:0364ebde659f14d11bc21744516c5ec49d3d06cb692733f66680771244998898",
        15_719_851,
        # An earlier version, without the folders en-valid; used by Keras's examples.
        Archive(
            "babi_keras",
            ("https://s3.amazonaws.com/text-datasets/babi_tasks_1-20_v1-2.tar.gz",),
            BABI_FILES,
            size=11_745_123,
        ),
    ),
    Archive(
        "cnn",
        ("https://cs.stanford.edu/~danqi/data/cnn.tar.gz",),
        {f"cnn/{split}.txt": f"cnn/{split}.txt" for split in ("train", "dev", "test")},
    ),
    Archive(
        "wiki_simple",
        (
            "https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.simple.vec",
            "https://s3-us-west-1.amazonaws.com/fasttext-vectors/wiki.simple.vec",
        ),
        {"vectors/wiki.simple.vec": ""},
        "sha1:55267c50fbdf4e4ae0fbbda5c73830a379d68795",
    ),
    Archive(
        "wiki_news",
        (
            "https://dl.fbaipublicfiles.com/fasttext/vectors-english/wiki-news-300d-1M.vec.zip",
            "https://s3-us-west-1.amazonaws.com/fasttext-vectors/wiki-news-300d-1M.vec.zip",
        ),
        _below("vectors", ["wiki-news-300d-1M.vec"]),
    ),
    Archive(
        "glove_840b",
        (
            "https://nlp.stanford.edu/data/glove.840B.300d.zip",
            "https://huggingface.co/stanfordnlp/glove/resolve/main/glove.840B.300d.zip",
        ),
        _below("vectors", ["glove.840B.300d.txt"]),
        "sha256:c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f",
        2_176_768_927,
    ),
]
ARCHIVES = {archive.name: archive for archive in _ALL}
_ARCHIVE_OF = {path: archive for archive in _ALL for path in archive.files}


def archive_of(path: str) -> Archive | None:
    """The archive that holds a path below the raw folder, if it can be downloaded."""
    return _ARCHIVE_OF.get(str(PurePosixPath(path)))
