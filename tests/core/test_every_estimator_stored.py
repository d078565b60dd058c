"""Every estimator on records in files and on workers: the model of memory, or one refusal."""

from __future__ import annotations

import copy
import pickle
import re
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from erasable import Records, all_estimators, load
from erasable.compose import make_column_transformer
from erasable.core import _derived
from erasable.core.errors import InvalidDataError, InvalidInputError, UnsupportedStepError
from erasable.decomposition import PCA
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import MultinomialNB
from erasable.pipeline import fusing, make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.utils._checks.reach import reachable
from law_instances import instances_of
from mixed_visits import ALL, FILLED, OF_TEXT, Mixed, N, encoded
from simulated_workers import Simulated, even, spread
from visits_table import OF_COUNTS, OF_DOCUMENTS, Visits, live

PARTS = 13
REFUSAL = "the features of the records lie (in files|on a cluster), from which"
LARGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "large.md"


NAMES = {name for name, _, _ in all_estimators()}


def cases_of(names: set[str]) -> Iterator[Any]:
    for name, cls, tags in all_estimators():
        for number, model in enumerate(instances_of(name, cls, tags) if name in names else []):
            yield pytest.param(name, model, id=f"{name}-{number}")


def mortal(n_workers: int, seed: int) -> Simulated:
    """Return workers that die now and then, some with what they have done."""
    workers = Simulated(n_workers)
    workers.die(0.03, seed)
    return workers


def stored(visits: Visits, where: str, folder: str, columns: list[str], workers: Any) -> Records:
    if where == "workers":
        calm, workers.before, workers.after = workers.before, *2 * (lambda name, job: True,)
        records = spread(visits.table, even(N, PARTS), workers, columns)
        workers.before = workers.after = calm
        return records
    pq.write_table(visits.table, f"{folder}/a.parquet", row_group_size=N // PARTS)
    uses = {"ids": "id", "target": "label", "groups": "person"}
    return Records.from_parquet(folder, **uses, features=columns)


def check(model: Any, visits: Visits, where: str, columns: list[str]) -> None:
    seeds = [name for name in model.get_params() if name.endswith("random_state")]
    model = clone(model).set_params(**dict.fromkeys(seeds, 0))
    twin = clone(model)
    seed = zlib.crc32(repr(model).encode())
    with tempfile.TemporaryDirectory() as folder:
        records = stored(visits, where, folder, columns, mortal(3, seed))
        if not model._can_read_blocks(remote=where == "workers"):
            with pytest.raises(InvalidInputError, match=REFUSAL):
                model.fit(records)
            return
        frame = visits.frame[columns]
        twin.fit(Records(frame, visits.y, ids=visits.ids, groups=visits.groups))
        assert model.fit(records).digest() == twin.digest()
        for gone in visits.requests():
            gone = live(model, gone)
            for each in (model, twin):
                each.delete(gone, digest=False)
            assert model.digest() == twin.digest()
        for each in (model, twin):
            each.delete(groups=[10])
        assert model.digest() == twin.digest()


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize(("name", "model"), list(cases_of(NAMES - OF_DOCUMENTS)))
def test_an_estimator_of_numbers(name: str, model: Any, where: str) -> None:
    visits = Visits(counts=name in OF_COUNTS, n=N)
    check(model, visits, where, list(visits.frame))


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize(("name", "model"), list(cases_of(OF_DOCUMENTS)))
def test_a_vectorizer(name: str, model: Any, where: str) -> None:
    check(model, Mixed(), where, ["note"])


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize("name", OF_TEXT)
def test_text_and_gaps(name: str, where: str) -> None:
    model, columns = OF_TEXT[name]
    check(clone(model), Mixed(), where, columns)


@pytest.mark.filterwarnings("ignore")
def test_steps_that_learn_from_tables_of_their_own() -> None:
    with fusing(False):
        model = make_pipeline(StandardScaler(), MinMaxScaler(), LogisticRegression())
        check(model, Visits(n=N), "workers", ["x0", "x1", "x2", "x3"])
        check(clone(model), Visits(n=N, narrow=True), "parquet", ["x0", "x1", "x2", "x3"])


def test_the_page_names_those_that_are_refused() -> None:
    refused = {
        name
        for name, cls, tags in all_estimators()
        if not any(model._can_read_blocks() for model in instances_of(name, cls, tags))
    }
    told = re.search(r"^- Not supported are (.*?)\.\s", LARGE.read_text("utf-8"), re.M | re.S)
    assert told is not None
    assert set(re.findall(r"`(\w+)`", told[1])) == refused


# -- what is refused, in one sentence --------------------------------------------------------------


def on_workers(columns: list[str]) -> Records:
    return spread(Mixed().table, even(N, PARTS), Simulated(2), columns)


def test_gaps_are_refused_where_a_step_takes_none() -> None:
    with pytest.raises(InvalidDataError, match=r"X contains NaN: \d+ values in column 'age'"):
        StandardScaler().fit(on_workers(["age", "dose"]))
    with pytest.raises(InvalidDataError, match="X contains NaN in 1 columns: 'age'"):
        make_column_transformer((StandardScaler(), ["age"])).fit(on_workers(ALL))
    with pytest.raises(InvalidDataError, match=r"X contains NaN: \d+ values in column 'x0'"):
        make_pipeline(make_column_transformer(("passthrough", ["age"])), PCA(1)).fit(
            on_workers(ALL)
        )
    assert StandardScaler().fit(on_workers(FILLED)).n_samples_seen_ == N


def test_text_is_refused_where_an_estimator_takes_none() -> None:
    with pytest.raises(InvalidDataError, match="the records hold text; StandardScaler expected"):
        StandardScaler().fit(on_workers(["city"]))
    table = Mixed().table.append_column("day", pa.array([0] * N, pa.date32()))
    with pytest.raises(InvalidDataError, match="'day' are neither numbers nor text"):
        spread(table, even(N, PARTS), Simulated(1), ["day"])
    whole = Mixed().table.append_column("code", pa.array([2**60] * N))
    records = None
    with pytest.raises(InvalidDataError, match=r"'code' has whole numbers from 2\*\*53 on beside"):
        records = spread(whole, even(N, PARTS), Simulated(1), ["code", "city"])
    assert records is None


def test_sparse_tables_are_refused_where_they_make_another_model() -> None:
    with pytest.raises(InvalidInputError, match="step 'ridge', a Ridge, makes another model"):
        make_pipeline(encoded(), Ridge()).fit(on_workers(ALL))


def test_tables_of_words_are_refused_where_they_make_another_model() -> None:
    with pytest.raises(InvalidInputError, match=r"a Ridge, makes another .*records.in_memory\(\)"):
        make_pipeline(CountVectorizer(), Ridge()).fit(on_workers(["note"]))


def test_a_table_of_words_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_derived, "_LARGEST", 1000)
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    with pytest.raises(InvalidDataError, match=r"takes \d+ bytes with the \d+ columns"):
        model.fit(on_workers(["note"]))
    CountVectorizer().fit(on_workers(["note"]))


@pytest.mark.parametrize("where", ["memory", "workers"])
def test_documents_that_are_none_are_refused(where: str) -> None:
    def records(columns: list[str]) -> Records:
        return on_workers(columns) if where == "workers" else Mixed().in_memory(columns)

    for model in (CountVectorizer(), make_column_transformer((TfidfVectorizer(), ["city"]))):
        with pytest.raises(InvalidDataError, match=r"documents( in 'city')? are not strings"):
            model.fit(records(["city"]))
        assert not vars(model).get("_accelerator")
    with pytest.raises(InvalidDataError, match="records have 2 columns; CountVectorizer expected"):
        CountVectorizer().fit(records(["note", "city"]))
    with pytest.raises(InvalidDataError, match="records hold numbers; TfidfVectorizer expected"):
        TfidfVectorizer().fit(records(["dose"]))


def test_a_step_that_looks_at_other_rows_is_refused() -> None:
    ranks = FunctionTransformer(lambda X: X - X.mean(axis=0))
    with pytest.raises(UnsupportedStepError, match="gives a row other values when it is alone"):
        make_pipeline(ranks, PCA(1)).fit(on_workers(FILLED))


# -- what is left of a record ----------------------------------------------------------------------


def test_texts_that_no_record_has_any_more_are_dropped_by_workers() -> None:
    visits, workers = Mixed(), Simulated(2)
    records = spread(visits.table, even(N, PARTS), workers, ALL)
    model = clone(OF_TEXT["logistic"][0]).fit(records)

    def is_there() -> bool:
        blocks = workers.blocks().values()
        return any("Rhöndorf" in held.matrix.texts[2].tolist() for held in blocks)

    assert is_there()
    model.delete(visits.ids[[3]])
    assert is_there()  # another record has it
    model.delete(visits.ids[[40]])
    assert not is_there()
    for number, held in workers.blocks().items():
        first = [0, *even(N, PARTS)][number]
        rows = [at - first for at in (3, 40) if 0 <= at - first < len(held.matrix)]
        assert not held.matrix.numbers[rows].any()


def test_words_that_no_record_has_any_more_are_gone() -> None:
    visits, workers = Mixed(), Simulated(2)
    records = spread(visits.table, even(N, PARTS), workers, ["note"])
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(records)
    vectorizer = model[0]

    def places() -> list[str]:
        found = [
            path for path, thing in reachable(model) if isinstance(thing, str) and "nheard" in thing
        ]
        texts = [text for held in workers.blocks().values() for text in held.matrix.texts[0]]
        return found + [text for text in texts if "nheard" in str(text)]

    assert "unheard" in vectorizer.vocabulary_
    assert len(places()) > 2
    model.delete(visits.ids[[3]])
    assert "unheard" in vectorizer.vocabulary_
    model.delete(visits.ids[[40]])
    assert not places()


def test_what_vectorizers_find_is_masked_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are of records: no answer of a worker has them as they are."""
    sent: list[bytes] = []
    workers = Simulated(2)
    ask = workers.ask

    def listen(jobs: Any, aside: bool = False) -> Any:
        found = ask(jobs, aside)
        sent.append(pickle.dumps(found))
        return found

    records = spread(Mixed().table, even(N, PARTS), workers, ["note"])
    monkeypatch.setattr(workers, "ask", listen)
    CountVectorizer().fit(records).delete(records.ids[:1])
    assert sum(map(len, sent)) > 2000
    assert not any(b"seldom" in each for each in sent)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["words, given", "words, some", "words and a classifier"])
def test_copies_of_a_vectorizer_go_on_reading(name: str, tmp_path: Path) -> None:
    visits, (model, columns) = Mixed(), OF_TEXT[name]
    (tmp_path / "visits").mkdir()
    records = stored(visits, "parquet", str(tmp_path / "visits"), columns, Simulated(1))
    model = clone(model).fit(records)
    model.delete(visits.ids[5:9])
    model.save(tmp_path / "model", records=True)
    others = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        load(tmp_path / "model", records=True),
        load(tmp_path / "model", model._held.copy_records()),
    ]
    for each in (model, *others):
        each.delete(visits.ids[[3, 40, 41]])
    assert {each.digest() for each in others} == {model.digest()}
    twin = clone(model).fit(visits.in_memory(columns))
    twin.delete(visits.ids[[3, 5, 6, 7, 8, 40, 41]])
    assert twin.digest() == model.digest()


@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize("name", ["words, some", "words, weighed"])
def test_a_vectorizer_makes_rows_of_stored_documents(name: str, where: str) -> None:
    visits, (model, columns) = Mixed(), OF_TEXT[name]
    with tempfile.TemporaryDirectory() as folder:
        records = stored(visits, where, folder, columns, Simulated(2))
        made = clone(model).fit_transform(records)
    theirs = clone(model).fit_transform(visits.frame["note"].tolist())
    assert type(made) is type(theirs)
    assert made.dtype == theirs.dtype
    for part in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(made, part), getattr(theirs, part)), part
