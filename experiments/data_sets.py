"""The data sets of the papers: where each is obtained, packed, and which checksum it has.

    python experiments/data_sets.py                          which files are there, and whole
    python experiments/data_sets.py pack adult adult.zip     pack what was downloaded
    python experiments/data_sets.py page                     write docs/papers/data.md

Files are in ``../shared/data`` beside the repository, or where the environment variable
``ERASABLE_DATA`` points.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "papers" / "data.md"
Pack = Callable[[Path, str], bytes]
"""Takes what was downloaded, and the name of a file; returns its content, before gzip."""
RECORD = 3073  # bytes of an image of CIFAR-10: its class, then 32 x 32 of red, green and blue
CAT, N_OTHERS = 3, 1000


class MissingDataError(FileNotFoundError):
    """A file of a data set is not there."""


@dataclass(frozen=True)
class DataSet:
    """A data set of the papers.

    Attributes
    ----------
    title, source, use : str
        `source` is a public address; `use` says which paper has it, and what is not as there.
    download : str
        The name of what is downloaded there.
    files : dict of str to str
        The files that are read, and the SHA-256 of each: of its content, where it is packed by
        gzip, whose own bytes differ by version.
    pack : callable or None
        None where files are read as they are downloaded.
    """

    title: str
    source: str
    download: str
    files: dict[str, str]
    use: str
    pack: Pack | None = None


def _member(path: Path, name: str) -> bytes:
    """Return a file of an archive, or a file that is not in one; without gzip."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return archive.read(_named(archive.namelist(), name, path))
    if path.name.endswith((".tgz", ".tar.gz")):
        with tarfile.open(path) as tar:
            found = tar.extractfile(_named(tar.getnames(), name, path))
            return found.read() if found else b""
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _named(names: list[str], name: str, path: Path) -> str:
    for each in names:
        if each.rpartition("/")[2] == name:
            return each
    raise SystemExit(f"{path} has no {name}; it has {', '.join(names[:9])}")


def _table(rows: Any) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def _lines(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def _adult(path: Path, name: str) -> bytes:
    """Join both files; labels of the test file end with a dot."""
    rows = [[*ADULT, "split"]]
    for member, split in (("adult.data", "train"), ("adult.test", "test")):
        for row in csv.reader(io.StringIO(_member(path, member).decode()), skipinitialspace=True):
            if len(row) == len(ADULT):
                rows.append([*row[:-1], row[-1].rstrip("."), split])
    return _table(rows)


HOUSING = [
    "longitude",
    "latitude",
    "housingMedianAge",
    "totalRooms",
    "totalBedrooms",
    "population",
    "households",
    "medianIncome",
    "medianHouseValue",
]


def _housing(path: Path, name: str) -> bytes:
    rows = csv.reader(io.StringIO(_member(path, "cal_housing.data").decode()))
    return _table([HOUSING, *([float(value) for value in row] for row in rows if row)])


def _wisdm(path: Path, name: str) -> bytes:
    text = _member(path, "WISDM_ar_v1.1_transformed.arff").decode()
    names = re.findall(r"(?im)^@attribute\s+\"?([\w-]+)", text)
    body = re.split(r"(?im)^@data\s*$", text)[1]
    rows = ([c.strip().strip('"') for c in line.split(",")] for line in body.split("\n") if line)
    return _table([names, *(["" if cell == "?" else cell for cell in row] for row in rows)])


LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")


def _jigsaw(path: Path, name: str) -> bytes:
    """Keep all comments: they are the random sample that the rows called natural are part of."""
    found = csv.DictReader(io.StringIO(_member(path, "train.csv").decode(), newline=""))
    rows = ([r["id"], r["comment_text"], *(r[label] for label in LABELS), 1] for r in found)
    return _table([["jigsaw_id", "text", *LABELS, "natural"], *rows])


def _same(member: str) -> Pack:
    return lambda path, name: _lines(_member(path, member))


def _unpacked(path: Path, name: str) -> bytes:
    """Read one of several files of a folder."""
    return _member(path / name.rpartition("/")[2] if path.is_dir() else path, name)


def cifar_images(path: Path, member: str) -> tuple[Any, Any]:
    """Read a file of CIFAR-10's binary version out of its archive.

    Returns
    -------
    X : ndarray of shape (n_images, 32, 32, 3), uint8
    y : ndarray of shape (n_images,), int64
    """
    content = _member(path, member)
    if not content or len(content) % RECORD:
        raise ValueError(
            f"{member} of {path} has {len(content):,} bytes; expected a multiple of {RECORD:,}"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    y = records[:, 0].astype(np.int64)
    if y.max() > 9:
        raise ValueError(f"{member} of {path} has a class {y.max()}; expected 0 to 9")
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), y


def _cats(path: Path, name: str) -> bytes:
    """Choose every cat, and the first of each other class."""
    parts = [cifar_images(path, f"data_batch_{i}.bin") for i in range(1, 6)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    chosen = [np.flatnonzero(y == c)[: None if c == CAT else N_OTHERS] for c in range(10)]
    index = np.sort(np.concatenate(chosen))
    X_new, y_new = cifar_images(path, "test_batch.bin")
    file = io.BytesIO()
    np.savez_compressed(
        file, x_train=X[index], y_train=y[index], train_index=index, x_test=X_new[:N_OTHERS],
        y_test=y_new[:N_OTHERS],
    )  # fmt: skip
    return file.getvalue()


IMAGES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")  # fmt: skip


def _images(folder: str, *sums: str) -> dict[str, str]:
    return {f"{folder}/{name}.gz": of for name, of in zip(IMAGES, sums, strict=True)}


SETS = {
    "sms": DataSet(
        "SMS Spam Collection",
        "https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
        "sms+spam+collection.zip",
        {
            "sms_spam/SMSSpamCollection.tsv.gz":
            "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d",
        },
        "Allouah et al.; nothing differs",
        _same("SMSSpamCollection"),
    ),
    "jigsaw": DataSet(
        "Jigsaw toxic comments",
        "https://www.kaggle.com/c/jigsaw-toxic-comment-classification-challenge/data",
        "train.csv.zip",
        {
            "jigsaw_toxic/jigsaw_subset.csv.gz":
            "e76d7c56cc51a750a49c4da28ed31876aa55c4e67a26b6058f72349ad7ec6441",
        },
        "Allouah et al., who have 140,000 comments; the results here are of 23,928, random samples "
        "of them that were public. Packed from the whole file it has all 159,571 comments, and "
        "another checksum",
        _jigsaw,
    ),
    "cifar10": DataSet(
        "CIFAR-10, binary version",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        "cifar-10-binary.tar.gz",
        {
            "cifar10/cifar-10-binary.tar.gz":
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        },
        "Allouah et al.; `cifar.py --full` reads it as it is downloaded",
    ),
    "cifar10-cats": DataSet(
        "CIFAR-10, every cat and 1,000 of each other class",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        "cifar-10-binary.tar.gz",
        {
            "cifar10/cifar10_cat_subset.npz":
            "f4d0fe320865b9b3d74a6ccb7ea9f06d5788984f816e3d95d6bf519b3418c3f0",
        },
        "Allouah et al., who have all; `cifar.py` without `--full`. Packed from the archive it has "
        "the same cats, the first 1,000 of each other class in place of a random 1,000, and "
        "another checksum",
        _cats,
    ),
    "heart": DataSet(
        "Heart disease, combined",
        "https://www.kaggle.com/datasets/johnsmith88/heart-disease-dataset",
        "heart.csv",
        {
            "heart_disease/heart.csv.gz":
            "9dfd7fbc614e833ac8c86806a74657a3380f4f9d1ad0a3266551af95e6b039da",
        },
        "Sim et al.; nothing differs: 302 of the 1,025 rows are distinct",
        _same("heart.csv"),
    ),
    "fashion": DataSet(
        "Fashion-MNIST",
        "https://github.com/zalandoresearch/fashion-mnist",
        "data/fashion, the folder of four files",
        _images(
            "fashion_mnist",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        "Sim et al.; nothing differs",
        _unpacked,
    ),
    "adult": DataSet(
        "Adult income",
        "https://archive.ics.uci.edu/dataset/2/adult",
        "adult.zip",
        {
            "adult/adult.csv.gz":
            "d99d5b2c07ff6c7e09b6e0cefe115f6835d5c7b6efebdb9276238f1243c6369b",
        },
        "Sim et al.; nothing differs",
        _adult,
    ),
    "housing": DataSet(
        "California housing",
        "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html",
        "cal_housing.tgz",
        {
            "california_housing/cal_housing.csv.gz":
            "81dc3561d0438eb382b21ecd53837b844e50fba0058a39cfba37009b2687b72c",
        },
        "Sim et al.; nothing differs. MI-S and VR-S take its map in place of that of Singapore's "
        "traffic, which is not public",
        _housing,
    ),
    "covertype": DataSet(
        "Forest cover type, 15,120 patches",
        "https://www.kaggle.com/c/forest-cover-type-prediction/data",
        "train.csv.zip",
        {
            "covertype/covertype_train_15120.csv.gz":
            "45d9949029e81059332efa1dcb22af082f7ad344859984b5dc761d1f328d88f5",
        },
        "Ginart et al.; nothing differs",
        _same("train.csv"),
    ),
    "mnist": DataSet(
        "MNIST",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "the four files, in one folder",
        _images(
            "mnist",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        "Ginart et al.; nothing differs",
        _unpacked,
    ),
    "wisdm": DataSet(
        "WISDM activities, transformed, v1.1",
        "https://www.cis.fordham.edu/wisdm/dataset.php",
        "WISDM_ar_latest.tar.gz",
        {
            "wisdm_activity/wisdm_transformed.csv.gz":
            "090facbfc3236229738596ac41a8685efd8ae604d6d730c800904c13ed204f05",
        },
        "no paper: a further data set of the k-means benchmark",
        _wisdm,
    ),
}  # fmt: skip

read: dict[str, None] = {}
"""Files that this process has asked for, by their names below the folder."""


def folder() -> Path:
    """Return the folder of the data sets."""
    return Path(os.environ.get("ERASABLE_DATA", ROOT.parent / "shared" / "data"))


def path(file: str) -> Path:
    """Return where a file is, by its name below the folder, and remember that it is read."""
    found = folder() / file
    if not found.exists():
        raise missing(found)
    read[file] = None
    return found


def missing(found: Path) -> MissingDataError:
    """Return the error that says which file is not there, and where to get it."""
    file = "/".join(found.parts[-2:])
    for name, each in SETS.items():
        if file in each.files:
            return MissingDataError(
                f"{found} is missing: download {each.download} from {each.source}, then "
                f"`python experiments/data_sets.py pack {name} PATH` (docs/papers/data.md)"
            )
    return MissingDataError(f"{found} is missing (docs/papers/data.md)")


def _is_packed(file: Path) -> bool:
    return file.suffix == ".gz" and not file.name.endswith(".tar.gz")


def checksum(found: Path) -> str:
    """Return the SHA-256 of a file, or of the content of a table or image packed by gzip."""
    with gzip.open(found) if _is_packed(found) else found.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack(name: str, download: Path) -> None:
    """Write the files of a data set from what was downloaded."""
    each = SETS[name]
    for file, expected in each.files.items():
        made = folder() / file
        made.parent.mkdir(parents=True, exist_ok=True)
        content = each.pack(download, file) if each.pack else download.read_bytes()
        made.write_bytes(gzip.compress(content, mtime=0) if _is_packed(made) else content)
        same = checksum(made) == expected
        print(f"{made}: {'that of the results here' if same else f'not {expected}'}")


def state(file: str, expected: str) -> str:
    """Say whether a file is there, and whole."""
    found = folder() / file
    if not found.exists():
        return "missing"
    return "there" if checksum(found) == expected else "there, with another checksum"


HEAD = """# The papers' data sets

<!-- Written by experiments/data_sets.py; do not edit. -->

The repository has no data. Get those that an experiment names: each is one download, and one
command that packs it:

```bash
export ERASABLE_DATA=~/papers-data    # ../shared/data beside the repository by default
python experiments/data_sets.py pack adult ~/Downloads/adult.zip
python experiments/data_sets.py       # which files are there, and whether they are the same
```

The checksum is the SHA-256 of the file that is read; of its content, where it is packed by gzip.
Licences are those of the sources: some of them ask for an account or for a citation. The data sets
Celltype, Postures and Botnet of Ginart et al. and the traffic of Singapore of Sim et al. were not
found. All other data are drawn.
"""


def text() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, each in SETS.items():
        parts.append(f"## {each.title}\n")
        parts.append(f"`{name}`: {each.download}, from <{each.source}>. {each.use[:1].upper()}"
                     f"{each.use[1:]}.\n")  # fmt: skip
        parts.append("| file that is read | SHA-256 |\n|---|---|")
        parts += [f"| `{file}` | `{of}` |" for file, of in each.files.items()]
        parts[-1] += "\n"
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Pack, write the page, or say what is there; 1 if something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command")
    packing = commands.add_parser("pack", help="pack what was downloaded")
    packing.add_argument("name", choices=SETS)
    packing.add_argument("download", type=Path, metavar="PATH")
    commands.add_parser("page", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.command == "pack":
        pack(options.name, options.download)
    elif options.command == "page":
        PAGE.write_text(text(), encoding="utf-8")
    else:
        states = [(*pair, state(*pair)) for each in SETS.values() for pair in each.files.items()]
        for file, _, found in states:
            print(f"{file}: {found}")
        return int(any(found == "missing" for *_, found in states))
    return 0


if __name__ == "__main__":
    sys.exit(main())
