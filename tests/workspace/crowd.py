"""A workspace of many people in two data sets, each leaving marks of many kinds."""

from __future__ import annotations

from pathlib import Path

from contexts import write_csv

from erasable.workspace import Workspace

PERSON, VISIT, NOTE, REMARK, WORD, WARD = (
    "zqperson",
    "zqvisit",
    "zqnote",
    "zqremark",
    "zqword",
    "zqw",
)
WARDS = ("north", "south", "east", "west")


class Crowd:
    """n people: two visits each, one letter each to a friend, and what marks them.

    Every mark belongs to one person, but for a letter's, which belong to sender and receiver.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def person(self, i: int) -> str:
        return f"{PERSON}{i:06d}"

    def friend(self, i: int) -> int:
        return i ^ 1

    def texts(self, people: list[int]) -> set[str]:
        """Texts that must be gone with people: names, ids and contents of records."""
        gone: set[str] = set()
        for i in people:
            gone |= {self.person(i), f"{WORD}{i:06d}", f"{WORD}{self.friend(i):06d}"}
            gone |= {f"{kind}{v:06d}" for v in (2 * i, 2 * i + 1) for kind in (VISIT, NOTE, REMARK)}
            gone |= {str(self.letter(i)), str(self.letter(self.friend(i)))}  # ids are kept as text
            gone |= {self.ward(i)} - set(WARDS)
        return gone

    def numbers(self, people: list[int]) -> set[float | int]:
        gone: set[float | int] = set()
        for i in people:
            gone |= {self.weight(v) for v in (2 * i, 2 * i + 1)}
            gone |= {self.code(v) for v in (2 * i, 2 * i + 1)}
            gone |= {self.length(i), self.length(self.friend(i))}
        return gone

    def weight(self, v: int) -> float:
        return 40.0123456789 + ((v * 7919) % 20011) / 317 + v * 1e-7

    def code(self, v: int) -> int:
        return 7_300_000_000_000 + v * 104_729

    def letter(self, i: int) -> int:
        return 9_100_000_000_000_000 + i * 1_299_709

    def length(self, i: int) -> float:
        return 3.2512345678 + ((i * 104_729) % 15_485_863) / 1009

    def ward(self, i: int) -> str:
        return f"{WARD}{i:06d}" if i % 97 == 0 else WARDS[i % 4]

    def visits(self, people: range) -> dict[str, list[object]]:
        numbers = [v for i in people for v in (2 * i, 2 * i + 1)]
        return {
            "visit": [f"{VISIT}{v:06d}" for v in numbers],
            "patient": [self.person(v // 2) for v in numbers],
            "doctor": [None if v % 5 == 0 else f"doctor{v % 7}" for v in numbers],
            "age": [20 + (v * 37) % 61 for v in numbers],
            "weight": [self.weight(v) for v in numbers],
            "code": [self.code(v) for v in numbers],
            "ward": [self.ward(v // 2) for v in numbers],
            "note": [f"{NOTE}{v:06d} of {self.person(v // 2)}" for v in numbers],
            "remark": [f"seen, {REMARK}{v:06d}" for v in numbers],
            "sick": [int((v * 7919) % 20011 > 9000 + (v * 13) % 4001) for v in numbers],
        }

    def letters(self, people: range) -> dict[str, list[object]]:
        return {
            "letter": [self.letter(i) for i in people],
            "sender": [self.person(i) for i in people],
            "receiver": [self.person(self.friend(i)) for i in people],
            "length": [self.length(i) for i in people],
            "body": [
                f"{WORD}{i:06d} {' '.join(f'common{(i * k) % 23}' for k in (1, 3, 5))} "
                + ("please" if i % 3 else "thanks")
                for i in people
            ],
            "kind": ["plea" if i % 3 else "answer" for i in people],
        }


def build(folder: Path, n: int, extra: int = 40) -> Workspace:
    """Make the workspace; `extra` people are in a source that can be appended."""
    crowd, people = Crowd(n), range(n)
    write_csv(folder / "visits.csv", crowd.visits(people))
    write_csv(folder / "letters.csv", crowd.letters(people))
    write_csv(folder / "few.csv", crowd.visits(range(4)))
    workspace = Workspace.create(folder / "ws")
    add, fit = workspace.add_dataset, workspace.fit
    add("visits", folder / "visits.csv", id_column="visit", subjects=["patient", "doctor"])
    add("letters", folder / "letters.csv", id_column="letter", subjects=["sender", "receiver"])
    add("few", folder / "few.csv", id_column="visit", subjects=["patient"])
    on: dict[str, object] = {"datasets": ["visits"]}
    sick: dict[str, object] = {**on, "features": ["age", "weight"], "target": "sick"}
    fit("segments", "preprocessing.StandardScaler,cluster.KMeans", **on,
        features=["age", "weight", "code"], params={"kmeans__n_clusters": "3"})  # fmt: skip
    fit("risk", "preprocessing.StandardScaler,linear_model.LogisticRegression", **sick)
    fit("bayes", "naive_bayes.GaussianNB", **sick)
    fit("wards", "preprocessing.OneHotEncoder,linear_model.LogisticRegression", **on,
        features=["ward"], target="sick",
        params={"onehotencoder__handle_unknown": "ignore"})  # fmt: skip
    fit("words", "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression",
        datasets=["letters"], features=["body"], target="kind")  # fmt: skip
    fit("tree", "sklearn.tree.DecisionTreeClassifier", **sick)
    fit("nearest", "sklearn.neighbors.KNeighborsClassifier", **on,
        features=["weight", "code"], target="sick")  # fmt: skip
    fit("entry", "residue_entry:train", datasets=["letters"])
    workspace.register("copy", datasets=["visits"], retrain="cp {data} {out}")
    fit("small", "naive_bayes.GaussianNB", datasets=["few"], features=["age"], target="sick")
    return workspace
