"""Tables of the ledger.

No table holds a value of a record, or an identity: subjects are known by tokens (keyed hashes).
Alembic's migrations make these tables; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, MetaData, Table
from sqlalchemy.schema import SchemaItem

from erasable.workspace.ledger.kinds import Bytes, Json, Moment, Real, Whole, Words, name_columns

_SERIAL = Whole(counts=True)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)


def _table(name: str, *parts: SchemaItem) -> Table:
    return Table(name, metadata, *parts)


# The workspace itself: its id, when it was made, the public key, settings, the log's frontier.
meta = _table(
    "meta",
    Column("name", Words(64), primary_key=True),
    Column("value", Json(...), nullable=False),
)

SETTINGS = {
    "workspace": str,
    "created_at": str,
    "key_id": str,
    "key_fingerprint": str,
    "export": str,
    "hooks_due": [str],
    "identity_types": [str],
    "published": [
        {
            "model": str,
            "to": str,
            "tracking_uri": ...,
            "delete_superseded": bool,
            "version": ...,
            "registered": ...,
            "superseded": [str],
            "error": ...,
            "log_size": int,
        }
    ],
    "published_before": [str],
    "restored": {
        "id": str,
        "position": int,
        "at": str,
        "made_at": str,
        "log_size": int,
        "head_size": ...,
        "head_root": ...,
        "list": ...,
    },
    "verification": {"verdicts": [{"model": str, "verdict": str, "detail": str}]},
}
"""Shapes (see `Json`) of the entries of `meta`; `log` checks its own entries."""

SEALED = frozenset(
    {
        "workspace", "key_id", "key_fingerprint", "export", "frontier", "hooks_due",
        "identity_types", "published", "published_before", "restored", "verification",
    }
)  # fmt: skip
"""Settings that affect execution, files, searches, signatures or reports: each has a seal."""

SEAL = "seal:"
"""The prefix of names of seals in `meta`; see `erasable.workspace.evidence.seals`."""

dataset = _table(
    "dataset",
    Column("id", _SERIAL, primary_key=True),
    Column("name", Words(200), nullable=False, unique=True),
    Column("source", Json({"kind": str, "place": str}), nullable=False),  # never a credential
    Column("id_column", Words(), nullable=False),
    # The first of them groups.
    Column("subjects", Json([{"column": str, "type": str}]), nullable=False),
    # The types as Arrow names them.
    Column("columns", Json([{"name": str, "type": str}]), nullable=False),
    Column("n_buckets", Whole(is_small=True), nullable=False),
    Column("version", Whole(is_small=True), nullable=False),
    Column("salt", Words(64)),  # of the commitment to it in the receipts of the last erasure
    Column("created_at", Moment, nullable=False),
)

dataset_version = _table(
    "dataset_version",
    Column("dataset_id", ForeignKey("dataset.id"), primary_key=True),
    Column("number", Whole(is_small=True), primary_key=True),
    Column("cause", Words(16), nullable=False),  # add, append, sync
    Column("n_records", Whole(), nullable=False),  # when it was made
    Column("n_suppressed", Whole(), nullable=False),  # records dropped on the way in
    # The difference from the version before; None from earlier versions of erasable.
    Column("n_added", Whole()),
    Column("n_changed", Whole()),
    Column("n_removed", Whole()),
    # Of this version: whole numbers may be any numbers in a later one.
    Column("columns", Json([{"name": str, "type": str}])),
    Column("created_at", Moment, nullable=False),
)

# A Parquet file with records of one bucket (a hash of their first subject). It belongs to the
# versions from `since` up to, and without, `until`; an erasure replaces it in all of them.
fragment = _table(
    "fragment",
    Column("id", _SERIAL, primary_key=True),
    Column("dataset_id", ForeignKey("dataset.id"), nullable=False),
    Column("bucket", Whole(is_small=True), nullable=False),
    Column("since", Whole(is_small=True), nullable=False),
    Column("until", Whole(is_small=True)),
    Column("key", Words(200), nullable=False, unique=True),
    Column("sha256", Words(64), nullable=False),
    Column("n_records", Whole(), nullable=False),
    Index("ix_fragment_dataset_bucket", "dataset_id", "bucket"),
)

# The subject of each token. A subject is only a name for tokens that were linked.
identity = _table(
    "identity",
    Column("token", Words(64), primary_key=True),
    Column("type", Words(64), nullable=False),
    Column("subject", Words(32), nullable=False, index=True),
)

# In which buckets of which data sets a token occurs, in any fragment that is still kept.
holding = _table(
    "holding",
    Column("token", Words(64), primary_key=True),
    Column("dataset_id", ForeignKey("dataset.id"), primary_key=True),
    Column("bucket", Whole(is_small=True), primary_key=True),
)

# Buckets that a file with records has left: people in it may have no record left.
vacated = _table(
    "vacated",
    Column("dataset_id", ForeignKey("dataset.id"), primary_key=True),
    Column("bucket", Whole(is_small=True), primary_key=True),
)

# The people kept out. Those of an exported list may be of a request unknown here.
suppression = _table(
    "suppression",
    Column("token", Words(64), primary_key=True),
    Column("type", Words(64), nullable=False),
    Column("request_id", Words(40), nullable=False, index=True),
    Column("since", Moment, nullable=False),
)

# The log holds a commitment to all that a request keeps out, under a salt that is nowhere else.
suppression_salt = _table(
    "suppression_salt",
    Column("request_id", Words(40), primary_key=True),
    Column("salt", Words(64), nullable=False),
    Column("n_tokens", Whole(), nullable=False),  # committed to
)

model = _table(
    "model",
    Column("id", _SERIAL, primary_key=True),
    Column("name", Words(200), nullable=False, unique=True),
    Column("kind", Words(16), nullable=False),  # estimator, entry, command, uncovered
    Column("recipe", Json({"kind": str}), nullable=False),
    Column("features", Json([str])),  # columns; None where the recipe chooses
    Column("target", Words()),
    Column("datasets", Json([int]), nullable=False),  # their ids
    Column("state", Words(16), nullable=False),  # ready, retired, uncovered
    Column("version", Whole(is_small=True), nullable=False),  # 0: none yet
    Column("hook", Words()),  # a command that runs after an update
    Column("policy", Words(16)),  # at-once, never; None: when it is refreshed
    Column("created_at", Moment, nullable=False),
)

# The salt of a version's commitment goes when the version is superseded.
model_version = _table(
    "model_version",
    Column("model_id", ForeignKey("model.id"), primary_key=True),
    Column("number", Whole(is_small=True), primary_key=True),
    Column("cause", Words(16), nullable=False),  # fit, erase, append, sync, refresh
    Column("dataset_versions", Json([int]), nullable=False),  # as in model.datasets
    Column("key", Words(200)),
    Column("sha256", Words(64)),
    Column("salt", Words(64)),
    Column("commitment", Words(64)),
    Column("algorithm", Words(), nullable=False),  # the part of digest() before the colon
    Column("software", Json({}), nullable=False),  # versions of packages it was made with
    Column("n_records", Whole(), nullable=False),
    Column("seconds", Real(), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("superseded_at", Moment),
)

# Durations, for estimates: per model, or per data set where the model is None.
measurement = _table(
    "measurement",
    Column("id", _SERIAL, primary_key=True),
    Column("model_id", ForeignKey("model.id")),
    Column("dataset_id", ForeignKey("dataset.id")),
    Column("kind", Words(16), nullable=False),  # see `Treatment.measured_as`
    Column("n_records", Whole(), nullable=False),
    Column("n_deleted", Whole(), nullable=False),
    Column("seconds", Real(), nullable=False),
    Column("at", Moment, nullable=False),
)

# `tokens`, `reach` and `condition` are the scope, `corrects` and a file the corrections; the
# log holds a commitment to them, under `salt`. They go when the request ends, and the salt, too.
request = _table(
    "request",
    Column("id", Words(40), primary_key=True),
    Column("state", Words(16), nullable=False, index=True),
    Column("regulation", Words(8), nullable=False),
    Column("received_at", Moment, nullable=False),
    Column("due_at", Moment),
    Column("extended_at", Moment),
    Column("extension", Words()),
    Column("hold", Words()),
    Column("reason", Words()),  # of a denial or cancellation
    Column("reference", Words(200)),  # the user's own name of it
    Column("type", Words(64)),
    Column("types", Json([str])),  # that the identity was looked for under; it stays
    Column("tokens", Json([[str]])),  # each a type and a token
    # By how many people an identity that is followed may be shared; 0: nothing is followed.
    Column("reach", Whole(is_small=True)),
    Column("condition", Json({"dataset": int, "where": str})),
    # Of a correction; erasures have none. It stays.
    Column("corrects", Json({"dataset": str, "columns": [str]})),
    Column("values_key", Words(200)),  # a file of the records as they are to be; it goes, too
    Column("values_sha256", Words(64)),
    Column("salt", Words(64)),
    Column("batch", Words(40), index=True),
    Column("matched", Whole()),  # records found, once it is processed
    # In which subject columns they were looked for then.
    Column("searched", Json([{"dataset": str, "column": str, "type": str}])),
    # By which joins of records, and links, other identities of the person were found then.
    Column("followed", Json([{"from_type": str, "to_type": str, "identities": int}])),
    Column("changed_at", Moment, nullable=False),
    Column("completed_at", Moment),
)

# Places outside of the workspace that people are erased from. The place has no credentials.
target = _table(
    "target",
    Column("id", _SERIAL, primary_key=True),
    Column("name", Words(200), nullable=False, unique=True),
    Column("state", Words(16), nullable=False),  # in use, removed
    Column("place", Words(), nullable=False),
    Column("subjects", Json([{"field": str, "type": str}]), nullable=False),
    Column("action", Words(8), nullable=False),  # delete, null, mask
    Column("keep", Json([str]), nullable=False),
    Column("cascade", Json([str]), nullable=False),
    Column("may_empty", Json(bool), nullable=False),  # whether one person may have all records
    # A file of what the erasure that is under way has found, to be looked for when it is gone.
    Column("plan_key", Words(200)),
    Column("plan_sha256", Words(64)),
    Column("created_at", Moment, nullable=False),
)

# One per request and target: the outcome, or a failure, which is tried again. Of places outside,
# the people who are still to be erased there, and then a verdict, as the treatment's exactness.
task = _table(
    "task",
    Column("request_id", ForeignKey("request.id"), primary_key=True),
    Column("target", Words(8), primary_key=True),  # dataset, model, target
    Column("target_id", Whole(), primary_key=True, autoincrement=False),
    Column("state", Words(16), nullable=False),  # failed, done; owed
    Column("treatment", Words(16)),  # of `erasable.workspace.ledger.treatments`
    Column("exactness", Words(32)),
    Column("n_records", Whole()),  # of this request
    Column("seconds", Real()),  # of the whole batch on this target
    Column("before", Words(64)),  # commitments
    Column("after", Words(64)),
    Column("tokens", Json([[str]])),  # while it is owed: each a type and a token
    Column("seal", Words(64)),  # of them; see `erasable.workspace.evidence.seals`
    Column("reason", Words()),  # of the verdict
)

# Failures of a model, data set or target; requests for it wait.
failure = _table(
    "failure",
    Column("target", Words(8), primary_key=True),  # dataset, model, target
    Column("target_id", Whole(), primary_key=True, autoincrement=False),
    Column("attempts", Whole(is_small=True), nullable=False),
    Column("error", Words(), nullable=False),
    Column("failed_at", Moment, nullable=False),
    Column("again_at", Moment),  # None: when an operator asks for it
)

# A model of the batch that is under way, to be prepared by whichever worker takes it.
step = _table(
    "step",
    Column("model_id", ForeignKey("model.id"), primary_key=True),
    Column("batch", Words(40), nullable=False),
    Column("wanted_key", Words(200), nullable=False),  # a file of the records to erase
    Column("wanted_sha256", Words(64), nullable=False),
    Column("state", Words(16), nullable=False),  # planned, done, failed
    Column("worker", Words(200)),
    Column("error", Words()),
    Column("key", Words(200)),  # of the model that was made
    Column("result", Json({"treatment": str})),
)

# Claims, granted or waiting: see `erasable.workspace.locking.leases`.
lease = _table(
    "lease",
    Column("id", _SERIAL, primary_key=True),
    Column("resource", Words(250), nullable=False, index=True),
    Column("exclusive", Boolean, nullable=False),
    Column("turn", Whole(), nullable=False),  # the lower one comes first
    Column("granted", Boolean, nullable=False),
    Column("owner", Words(16), nullable=False, index=True),
    Column("number", Whole(), nullable=False),  # of the lock that the owner's session holds
    Column("label", Words(200), nullable=False),  # machine and process
    Column("since", Moment, nullable=False),
    Column("until", Moment, nullable=False),
)

PASSING = frozenset({"lease", "step"})
"""Tables of work under way, which a copy does not need."""

receipt = _table(
    "receipt",
    Column("request_id", ForeignKey("request.id"), primary_key=True),
    Column("body", Bytes, nullable=False),
)

# Artifacts that nothing refers to any more, to be removed.
garbage = _table(
    "garbage",
    Column("key", Words(200), primary_key=True),
)

log_entry = _table(
    "log_entry",
    Column("position", Whole(), primary_key=True, autoincrement=False),
    Column("kind", Words(32), nullable=False),
    Column("subject", Words(200), nullable=False, index=True),  # what it is about
    Column("body", Bytes, nullable=False),
    Column("leaf", Bytes, nullable=False),
    Column("seal", Words(64)),  # a keyed hash of position and leaf
    Index("ix_log_entry_kind", "kind"),
    Index("ix_log_entry_about", "subject", "position"),
)

name_columns(metadata)

IN_USE = (model_version.c.model_id == model.c.id) & (model_version.c.number == model.c.version)
"""Join of a model with its current version."""
