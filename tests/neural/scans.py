"""Random lives of a workspace whose records have images, some of them shared by name with others.

What is expected is known here without the workspace: which records are there, whose they are, and
what is in each file.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import erasable
from erasable.linear_model import LogisticRegression
from erasable.neural import Embedding
from erasable.pipeline import make_pipeline
from erasable.workspace import Workspace

HOME = "neural.backbones"
NETWORK = "erasable.neural.NetworkClassifier"
OF_NETWORK = {"network": f"{HOME}.small_images", "shape": [1, 8, 8], "max_epochs": 1}
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "frozen": (
        "neural.Embedding -> linear_model.LogisticRegression",
        {"embedding__backbone": f"{HOME}.images", "embedding__shape": [1, 8, 8]},
    ),
    "learning": (NETWORK, OF_NETWORK),
    "about": (
        "neural.ApproximateNetwork",
        {"estimator": NETWORK, "method": "FineTune", "method_params": {"n_epochs": 1}}
        | {f"estimator__{name}": value for name, value in OF_NETWORK.items()},
    ),
}
N_FIRST, N_PEOPLE = 90, 30  # of fewer records vectors are kept where bytes do not show them


class Life:
    """A workspace in a folder, and what is to be in it.

    Parameters
    ----------
    folder : Path
        An empty one; the workspace lies in its folder "ws".
    seed : int
    models : sequence of str
        Of `RECIPES`.
    """

    def __init__(self, folder: Path, seed: int, models: Any = tuple(RECIPES)) -> None:
        self.folder, self.rng = folder, np.random.default_rng(seed)
        self.records: dict[int, tuple[str, str, int]] = {}
        self.pixels: dict[str, Any] = {}
        self.names: list[str] = []
        self.gone: set[str] = set()
        self.touched = False
        (folder / "scans").mkdir()
        self._grow(N_FIRST)
        self.workspace = Workspace.create(folder / "ws")
        self.workspace.add_dataset(
            "scans", self._written(), id_column="id", subjects=["who"], files=["scan"]
        )
        self.models, self.learned, self.fresh = list(models), set(self.records), True
        for name in models:
            recipe, params = RECIPES[name]
            self.workspace.fit(
                name, recipe, datasets=["scans"], features=["scan"], target="ill", params=params
            )

    # -- acts --------------------------------------------------------------------------------------

    def append(self) -> None:
        """Add some records, also of people who have left, whose records must stay out."""
        before = set(self.records)
        self._grow(int(self.rng.integers(1, 6)))
        self.workspace.append("scans", self._written(set(self.records) - before))
        self._keep_out()

    def sync(self) -> None:
        """Read all anew, as a source has it that has forgotten nobody."""
        self.workspace.sync("scans", self._written())

    def fit(self) -> None:
        """Have the models learn from what has come since."""
        for name in self.models:
            self.workspace.fit(name)
        self.learned, self.touched, self.fresh = set(self.records), False, False

    def erase(self) -> list[str]:
        """Erase one person or some; return the requests."""
        here = sorted({who for who, _, _ in self.records.values()} - {"stays"})
        if not here:
            return []
        people = self.rng.choice(here, min(int(self.rng.integers(1, 4)), len(here)), False)
        asked = [each.id for each in self.workspace.request(people.tolist())]
        self.gone |= set(people.tolist())
        self._keep_out()
        return asked

    def process(self) -> Any:
        """Carry the requests out."""
        self.touched, self.fresh = True, False
        return self.workspace.process()

    def move(self, number: int) -> None:
        """Go on in a copy that was restored from a backup."""
        self.workspace.back_up(self.folder / f"backup{number}", with_keys=True)
        self.workspace.context.ledger.close()
        place = self.folder / f"ws{number}"
        Workspace.restore(self.folder / f"backup{number}", place, suppressions=None)
        self.workspace, self.fresh = Workspace.open(place), False

    # -- what is to be -----------------------------------------------------------------------------

    def look(self) -> None:
        """Hold the workspace against what is to be in it."""
        root = self.workspace.context.root
        self.workspace.context.ledger.close()  # reading a file of SQLite's gives up its locks
        whole = b"\n".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
        self.workspace = Workspace.open(root)
        here = {name for _, name, _ in self.records.values()}
        for name, pixels in self.pixels.items():
            kept = pixels.tobytes() in whole
            assert kept == (name in here), f"{name} is {'' if kept else 'not '}there"
            assert (self.folder / name).read_bytes() not in whole
            assert kept or pixels.astype(np.float64).tobytes() not in whole
        assert self.workspace.dataset("scans")["n_records"] == len(self.records)
        found = {each.model: each.verdict for each in self.workspace.verify()}
        about = "approximate" if self.touched else "equal"
        assert found == {each: about if each == "about" else "equal" for each in found}
        if "frozen" in found:
            self._look_by_hand(whole)

    def _look_by_hand(self, whole: bytes) -> None:
        """Hold the exact model against one of what is left, and look for vectors of the others."""
        flat = np.stack([each.reshape(-1) for each in self.pixels.values()]).astype(float)
        place = {name: at for at, name in enumerate(self.pixels)}
        known = [each for number, each in self.records.items() if number in self.learned]
        rows = [place[name] for _, name, _ in known]
        model = make_pipeline(Embedding(f"{HOME}.images", shape=(1, 8, 8)), LogisticRegression())
        model.fit(flat[rows], [ill for _, _, ill in known])
        path = self.folder / "frozen.model"
        path.unlink(missing_ok=True)
        self.workspace.export("frozen", path)
        found = erasable.load(path, trusted=True)
        np.testing.assert_array_equal(found.predict_proba(flat), model.predict_proba(flat))
        vectors = model[0].transform(flat).astype(np.float32)
        for name, at in place.items():
            kept = vectors[at].tobytes() in whole
            assert not kept or at in rows, f"the vector of {name} is there"
            assert kept or not self.fresh or at not in rows, f"the vector of {name} is not there"

    def told(self, request: str) -> str:
        """Return what the receipt of a request says."""
        envelope = json.loads(self.workspace.receipt(request))["envelope"]
        return str(json.loads(base64.b64decode(envelope["payload"])))

    def _grow(self, n: int) -> None:
        for number in range(len(self.names), len(self.names) + n):
            shared = bool(self.pixels) and self.rng.random() < 0.3
            name = str(self.rng.choice(list(self.pixels))) if shared else self._drawn(number)
            self.names.append(name)
            person = f"p{self.rng.integers(N_PEOPLE)}"
            self.records[number] = (person, name, int(self.rng.integers(2)))
        first = list(self.records)
        if n == N_FIRST:  # both classes are there
            for number in first[:2]:
                self.records[number] = ("stays", self.records[number][1], number)

    def _drawn(self, number: int) -> str:
        pixels = self.rng.integers(1, 255, (8, 8), dtype=np.uint8)
        name = f"scans/{number}.png"
        Image.fromarray(pixels).save(self.folder / name)
        self.pixels[name] = pixels
        return name

    def _written(self, only: Any = None) -> Path:
        """Write the source, of all that was ever there; or of some records."""
        self._source = getattr(self, "_source", {}) | self.records
        rows = ["id,who,scan,ill"]
        for number, (who, name, ill) in self._source.items():
            if only is None or number in only:
                rows.append(f"{number},{who},{name},{ill}")
        path = self.folder / "scans.csv"
        path.write_text("\n".join(rows) + "\n")
        return path

    def _keep_out(self) -> None:
        self.records = {
            number: each for number, each in self.records.items() if each[0] not in self.gone
        }
