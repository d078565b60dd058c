"""The estimator `Embedding`: a frozen network as a step, which returns a vector for each record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core._schema import Fields, Integer, Text
from erasable.core._stored_parts import drop_copies, refuse_stored_gaps
from erasable.core.arrays import Flags, Ints, Values
from erasable.core.changes import NOTHING, Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.errors import (
    ArtifactError,
    ElsewhereError,
    InvalidInputError,
    InvalidParameterError,
)
from erasable.core.estimator import NEVER, Erasable
from erasable.core.passes import storage
from erasable.core.persistent import Persistent
from erasable.core.row_arrays import padded
from erasable.core.threads import N_JOBS
from erasable.core.trust import origin
from erasable.neural._factories import find_factory, refuse_no_path
from erasable.neural._frozen import MOST_OUTPUTS, Frozen, Platform
from erasable.neural._modules import shaped


@dataclass
class Vectors:
    """The vectors of records in memory, computed when needed; stored records have no rows here."""

    made: Any  # (n_rows, n_outputs), float32
    known: Flags  # (n_rows,): whether the vector was computed

    def forget(self, rows: Ints) -> None:
        """Overwrite the vectors of rows."""
        self.known[rows] = False
        self.made[rows] = 0


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Erasable, Persistent):
    """Send records through a frozen network, and hand on the vectors it makes of them.

    Nothing is learned of the records, so that nothing is left of one that goes: before any
    estimator of erasable, `make_pipeline(Embedding(...), LogisticRegression())` deletes exactly.

    Parameters
    ----------
    backbone : str
        Import path of a function without arguments that makes the network, such as
        ``"nets.small"``. The network takes a batch of float32 tensors (of int64, where there is a
        `tokenizer`), and returns a tensor with a row for each. It is not kept in files.
    weights : str, default=None
        File of its state, as ``torch.save(network.state_dict(), file)`` writes it. By default the
        weights that the function gives it.
    shape : tuple of int, default=None
        What the columns of a record are made to be, such as (1, 28, 28); by default they are left
        in a row.
    tokenizer : str, default=None
        Import path of a function that makes a list of whole numbers of a text. Records are then
        texts, as for `CountVectorizer`.
    max_length : int, default=None
        So many numbers of a text are taken; shorter ones are filled up with 0. Needed where there
        is a `tokenizer`.
    batch_size : int, default=1
        How many records pass at a time. More are faster, and are refused where a record's vector
        then depends on its place in the last bits, as it often does.
    n_jobs : int, default=None
        Threads. Each takes records of its own, so that vectors are the same with any number.

    Attributes
    ----------
    platform_ : Platform
        Version of torch, instructions of the processor, and hash of what the network makes of a
        few fixed records: what the last bits of a vector depend on.
    weights_digest_ : str
        Hash of the weights.

    Raises
    ------
    InvalidParameterError
        From `fit`: no such function, a network that draws numbers, takes statistics of a batch, or
        whose vectors depend on the place in a batch.
    InvalidInputError
        From `fit`: no weights, or those of another network; records of a shape that it cannot take.

    See Also
    --------
    erasable.pipeline.make_pipeline : Puts it before an estimator.

    Notes
    -----
    The law holds on one kind of machine: with another version of torch, or on another processor,
    the same record may have another vector in the last bits. So these are part of the state, and
    two models made on different kinds are told from two that differ. Such a model predicts
    anywhere, and deletes where it was made.

    Vectors of the records are kept, 4 bytes a number, and overwritten with the record. Those of
    records in Parquet files are not, and are made in each reading: for each pass of the estimator
    behind. Records on a cluster are refused.

    Examples
    --------
    >>> from erasable.linear_model import LogisticRegression
    >>> from erasable.pipeline import make_pipeline
    >>> model = make_pipeline(Embedding("torch.nn.Identity"), LogisticRegression())
    >>> model.fit([[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]).delete([3]).action
    'updated'
    """

    _reads_blocks: ClassVar[bool] = True
    _reads_remote_blocks: ClassVar[bool] = False  # the network is here
    _refit_from: ClassVar[tuple[int, float]] = NEVER
    _without_effect = ("n_jobs",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "weights": [str, None],
        "shape": [tuple, list, None],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
    }

    _network: Frozen | None
    _none_in_files = ("_network",)
    _n_outputs: int

    def __init__(
        self,
        backbone: str,
        weights: str | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        tokenizer: str | None = None,
        max_length: int | None = None,
        batch_size: int = 1,
        n_jobs: int | None = None,
    ) -> None:
        self.backbone = backbone
        self.weights = weights
        self.shape = shape
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.batch_size = batch_size
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        refuse_no_path(self.backbone, "backbone")
        if self.tokenizer is not None:
            refuse_no_path(self.tokenizer, "tokenizer")
        if (self.tokenizer is None) != (self.max_length is None):
            raise InvalidParameterError(
                "tokenizer and max_length belong together. Got one of them; pass both, or neither"
            )
        if self.tokenizer is not None and self.shape is not None:
            raise InvalidParameterError(
                f"shape={tuple(self.shape)} beside a tokenizer, which makes max_length numbers of "
                "a record; expected one of them; leave shape out"
            )

    def _fit_rows(self) -> None:
        held = self._attached()
        refuse_stored_gaps(self)
        self._network = self._open(trusted=True)
        self.weights_digest_ = self._network.digest
        shape, kind = self._record_shape()
        self._n_outputs, self.platform_ = self._network.probe(shape, kind)
        rows = held.live_rows()[: self._network.batch]
        self._network.refuse_place_dependent(self._given(held.records.matrix[rows]))
        drop_copies(self)
        self._reattach()

    def _open(self, *, trusted: bool) -> Frozen:
        weights, batch = self._at_fit("weights"), self._at_fit("batch_size")
        return Frozen(self._at_fit("backbone"), weights, batch, trusted=trusted)

    def _record_shape(self) -> tuple[tuple[int, ...], Any]:
        if self._at_fit("tokenizer") is not None:
            return (self._at_fit("max_length"),), np.int64
        return shaped(self._at_fit("shape"), self.n_features_in_), np.float32

    def _update(self, delta: Delta) -> Outcome:
        kept, records = self._accelerator, self._attached().records
        if delta.moved and not records.is_stored:
            kept.made = padded(kept.made, records.n_rows)
            kept.known = padded(kept.known, records.n_rows)
        if kept.known.size:
            kept.forget(delta.leaving)
        return Outcome("updated")

    def _output_change(self) -> TableChange:
        return NOTHING

    def _state(self) -> dict[str, Any]:
        of_network = {"n_outputs": self._n_outputs, "weights": self.weights_digest_}
        return {"network": of_network, "platform": self.platform_._asdict()}

    def _schema(self) -> Fields:
        network = Fields({"n_outputs": Integer(1, MOST_OUTPUTS), "weights": Text()})
        return Fields(
            {"network": network, "platform": Fields(dict.fromkeys(Platform._fields, Text()))}
        )

    def _restore(self, state: dict[str, Any]) -> None:
        self._after_reading()
        self._network = None
        self._n_outputs = state["network"]["n_outputs"]
        self.weights_digest_ = state["network"]["weights"]
        self.platform_ = Platform(**state["platform"])

    def _after_reading(self) -> None:
        """Refuse a file that is not the caller's own and names a function that it must not."""
        if not origin().trusted:
            for path in (self._at_fit("backbone"), self._at_fit("tokenizer")):
                if path is not None:
                    find_factory(path, trusted=False)

    def _frozen(self) -> Frozen:
        """Return the network; after loading it is made at the first use."""
        if self._network is None:
            network = self._open(trusted=True)
            if network.digest != self.weights_digest_:
                raise ArtifactError(
                    f"the weights of {self._at_fit('backbone')} are not those that the model was "
                    "fitted with; expected the same; take them from a backup, or fit again"
                )
            self._network = network
        return self._network

    def _reattach(self) -> None:
        self._refuse_elsewhere()
        records = self._attached().records
        n_rows = 0 if records.is_stored else records.n_rows
        made = np.zeros((n_rows, self._n_outputs), dtype=np.float32)
        self._accelerator = Vectors(made, np.zeros(n_rows, dtype=np.bool_))

    def _refuse_elsewhere(self) -> None:
        """Refuse a machine on which vectors may differ from those of the model."""
        n_outputs, here = self._frozen().probe(*self._record_shape())
        if n_outputs != self._n_outputs:
            raise ArtifactError(
                f"{self._at_fit('backbone')} makes {n_outputs} numbers of a record; expected "
                f"{self._n_outputs}, as when the model was fitted; fit again"
            )
        if here != self.platform_:
            raise ElsewhereError(
                f"the vectors of the model were made with torch {self.platform_.torch} on "
                f"{self.platform_.processor}, and here is torch {here.torch} on {here.processor}, "
                "where their last bits differ; expected the same kind of machine; delete there, "
                "or fit again here"
            )

    # -- what follows --------------------------------------------------------------------------

    def _given(self, matrix: Values) -> Any:
        """Convert rows that were read into the input of the network."""
        path, length = self._at_fit("tokenizer"), self._at_fit("max_length")
        if path is None:
            shape, kind = self._record_shape()
            return np.asarray(matrix).astype(kind).reshape(len(matrix), *shape)
        cut = find_factory(path, trusted=True)
        given = np.zeros((len(matrix), length), dtype=np.int64)
        for place, text in enumerate(matrix[:, 0].tolist()):
            numbers = _numbers_of(text, cut, path)[:length]
            given[place, : numbers.size] = numbers
        return given

    def transform(self, X: Any) -> Any:
        """Return the vector of each record.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or iterable of str
            As `fit` takes.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        return self._made_of(self._read_matrix(X))

    def _made_of(self, matrix: Values) -> Any:
        return self._frozen().vectors(self._given(matrix), self.n_jobs).astype(np.float64)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and return the vector of each record; see `fit` and `transform`."""
        held = self.fit(X, y, ids=ids, groups=groups)._attached()
        made = self._transform_held(held.live_rows())
        if made is not None:
            return made
        blocks = storage(held.records.matrix).blocks(held.live_rows(), gaps=True)
        parts = [self._made_of(each.matrix[each.positions]) for each in blocks if each.size]
        return np.concatenate(parts)

    def _transform_held(self, rows: Ints) -> Any:
        if self._accelerator is None:
            self._reattach()
        kept: Vectors = self._accelerator
        if kept.known.size == 0:
            return None
        missing = rows[~kept.known[rows]]
        if missing.size:
            if self._network is None:  # the vectors that are there may come from elsewhere
                self._refuse_elsewhere()
            given = self._given(self._attached().records.matrix[missing])
            kept.made[missing] = self._frozen().vectors(given, self.n_jobs)
            kept.known[missing] = True
        return kept.made[rows].astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return self._n_outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self._at_fit("tokenizer") is not None:
            tags.input_tags.string = tags.input_tags.one_d_array = True
            tags.input_tags.two_d_array = False
        return tags


def _numbers_of(text: str, cut: Any, path: str) -> Ints:
    """Return the numbers that a tokenizer gives for a text, which no message repeats."""
    try:
        made = cut(text)
        numbers = np.asarray(made)
    except Exception as error:
        raise InvalidInputError(
            f"{path} raised {type(error).__name__} of a text; expected a list of whole numbers; "
            "call it yourself"
        ) from error
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        told = numbers.dtype if numbers.ndim == 1 else f"a {type(made).__name__}"
        raise InvalidInputError(f"{path} makes {told} of a text; expected a list of whole numbers")
    return numbers
