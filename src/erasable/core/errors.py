"""Every exception of erasable.

::

    ErasableError
    ├── InvalidInputError (ValueError)   the input cannot be used
    │   ├── InvalidIdsError              ids or groups: repeated, of a wrong type, not matching rows
    │   ├── InvalidDataError             NaN, infinity, empty, wrong width, text columns
    │   │   └── InvalidTypeError (TypeError)   objects that are no numbers
    │   ├── InvalidParameterError (TypeError)  a parameter of a wrong type, or out of range
    │   └── MagnitudeError               so large that exact sums would overflow
    ├── UnknownIdError (LookupError)     no such record: never there, or already deleted
    ├── TooFewRecordsError (ValueError)  fewer records than the model needs to exist
    │   └── UnlearnableError (InvalidDataError)  a wrapped estimator cannot learn from them
    ├── KeyCollisionError                two ids share a record key; another seed separates them
    ├── ClusterError (ConnectionError)   workers that hold records are lost, or cannot hold them
    ├── DetachedError                    the model was loaded without its records
    ├── UnsupportedStepError (TypeError) a pipeline step that learns but cannot forget
    ├── ExportError (TypeError)          scikit-learn has no estimator that predicts the same
    ├── MissingPackageError (ModuleNotFoundError)   a package of an extra is not installed
    ├── ArtifactError (ValueError)       a file that is damaged, foreign, or of another version
    │   ├── ElsewhereError               made on another kind of machine, whose last bits differ
    │   └── ArtifactFileError (OSError)  it cannot be opened, read or written
    │       └── ArtifactNotFoundError (FileNotFoundError)   there is no such file or folder
    └── WorkspaceError                   a request to a workspace cannot be carried out
        ├── NotInWorkspaceError (LookupError)   no such workspace, data set, model or request
        ├── WorkspaceBusyError           another process is at work on it
        ├── WorkspaceDiskError (OSError) a file of it cannot be read or written
        ├── WorkspaceServerError (ConnectionError)   its database or object store cannot be reached
        ├── WorkspaceVersionError        it was made by another version of erasable
        ├── LedgerError                  its ledger is damaged, or was tampered with
        │   └── TamperedError            rows of it are not what its log says of them
        ├── SourceError (ValueError)     a source of data cannot be read, or has changed
        └── EvidenceError (ValueError)   a key, a signature, a proof or an entry does not hold

A model that is not fitted raises scikit-learn's own ``NotFittedError``, and an
InvalidParameterError is also scikit-learn's. A call that raises has changed nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from erasable.core._parameter_error import InvalidParameterError

__all__ = [
    "AcceleratorWarning",
    "ArtifactError",
    "ArtifactFileError",
    "ArtifactNotFoundError",
    "ClusterError",
    "DetachedError",
    "DialectWarning",
    "ElsewhereError",
    "ErasableError",
    "EvidenceError",
    "ExportError",
    "ExportWarning",
    "InvalidDataError",
    "InvalidIdsError",
    "InvalidInputError",
    "InvalidParameterError",
    "InvalidTypeError",
    "KeyCollisionError",
    "LedgerError",
    "MagnitudeError",
    "MissingPackageError",
    "NotInWorkspaceError",
    "PrecisionWarning",
    "SourceError",
    "TamperedError",
    "TooFewRecordsError",
    "UnknownIdError",
    "UnlearnableError",
    "UnsupportedStepError",
    "WorkspaceBusyError",
    "WorkspaceDiskError",
    "WorkspaceError",
    "WorkspaceServerError",
    "WorkspaceVersionError",
]


class ErasableError(Exception):
    """Root of every exception that erasable raises on purpose."""


class InvalidInputError(ErasableError, ValueError):
    """The input cannot be used."""


class InvalidIdsError(InvalidInputError):
    """Ids or groups repeat, have a wrong type, or do not match the rows."""


class InvalidDataError(InvalidInputError):
    """The values are not finite numbers, are empty, or have the wrong width."""


class InvalidTypeError(InvalidDataError, TypeError):
    """The values are of a type that is no number, such as a dict."""


class MagnitudeError(InvalidInputError):
    """The values, or their number, are so large that exact sums would overflow."""


class UnknownIdError(ErasableError, LookupError):
    """No such record: it was never there, or it is already deleted.

    The two cases are one on purpose: nothing is remembered of a deleted record.
    """


class TooFewRecordsError(ErasableError, ValueError):
    """The model needs more records than there are, or than the deletion would leave."""


class UnlearnableError(TooFewRecordsError, InvalidDataError):
    """A wrapped estimator says that it cannot learn from these records, or from so few."""


class KeyCollisionError(ErasableError, RuntimeError):
    """Two ids share a 64-bit record key under this seed; use another ``random_state``."""


class ClusterError(ErasableError, ConnectionError):
    """Workers of a cluster that hold records are lost, or cannot hold or read them."""


class DetachedError(ErasableError, RuntimeError):
    """The model was loaded without its records: it predicts, but it cannot delete."""


class UnsupportedStepError(ErasableError, TypeError):
    """A pipeline step learns from data but can neither delete nor be refitted."""


class ExportError(ErasableError, TypeError):
    """scikit-learn has no estimator that predicts what the model predicts."""


class MissingPackageError(ErasableError, ModuleNotFoundError):
    """A package is not installed; the message has the command that installs it."""


class ArtifactError(ErasableError, ValueError):
    """A file is not ours, is damaged, is of another version, or does not match the records."""


class ElsewhereError(ArtifactError):
    """The model was made on another kind of machine, where its numbers have other last bits."""


class ArtifactFileError(ArtifactError, OSError):
    """A file cannot be opened, read or written; ``errno`` is the system's reason."""

    def __new__(cls, *args: Any) -> Self:
        """Make one as `OSError` does: the first `__new__` in the order of bases is another's."""
        return OSError.__new__(cls, *args)


class ArtifactNotFoundError(ArtifactFileError, FileNotFoundError):
    """There is no such file, or no folder to write it into."""


class WorkspaceError(ErasableError):
    """A request to a workspace cannot be carried out; nothing has changed."""


class NotInWorkspaceError(WorkspaceError, LookupError):
    """There is no such workspace, data set, model or request."""


class WorkspaceBusyError(WorkspaceError, RuntimeError):
    """Another process is at work on the workspace."""


class WorkspaceDiskError(WorkspaceError, OSError):
    """A file of the workspace cannot be read or written; ``errno`` is the system's reason."""


class WorkspaceServerError(WorkspaceError, ConnectionError):
    """The server of a workspace's database, or its object store, cannot be reached, or refuses."""


class WorkspaceVersionError(WorkspaceError, RuntimeError):
    """The workspace was made by another version of erasable."""


class LedgerError(WorkspaceError):
    """The ledger is damaged, is no ledger, or holds what erasable would not have written."""


class TamperedError(LedgerError):
    """Rows of the ledger are not what the log says of them; nothing was executed or signed."""


class SourceError(WorkspaceError, ValueError):
    """A source of data cannot be read, or has changed."""


class EvidenceError(WorkspaceError, ValueError):
    """A key, a signature, a proof or an entry of the log does not hold."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name == "InvalidParameterError":  # scikit-learn is slow to import, and a command line waits
        from erasable.core._parameter_error import InvalidParameterError

        return InvalidParameterError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class AcceleratorWarning(UserWarning):
    """The accelerator of a model of a workspace cannot be used; it is made again."""


class DialectWarning(UserWarning):
    """A text file is read in an unusual dialect that its content suggests."""


class ExportWarning(UserWarning):
    """An exported estimator holds the values of records."""


class PrecisionWarning(UserWarning):
    """A column is so skewed that many of its small values become 0 on the grid."""
