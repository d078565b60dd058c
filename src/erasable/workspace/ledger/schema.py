"""The tables of the ledger.

No table holds a value of a record, or an identity: subjects are known by tokens (keyed hashes).
Alembic's migrations make these tables; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from erasable.workspace.ledger.kinds import Json, Moment, name_columns

__all__ = [
    "PASSING",
    "SETTINGS",
    "dataset",
    "dataset_version",
    "failure",
    "fragment",
    "garbage",
    "holding",
    "identity",
    "lease",
    "log_entry",
    "measurement",
    "meta",
    "metadata",
    "model",
    "model_version",
    "receipt",
    "request",
    "step",
    "suppression",
    "suppression_salt",
    "task",
]

_SERIAL = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up Integer keys alone

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

# The workspace itself: its id, when it was made, the public key, settings, the log's frontier.
meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
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
    "verification": {"at": str, "verdicts": [{"model": str, "verdict": str, "detail": str}]},
}
"""Shapes (see `Json`) of what is in `meta`; `log` says what is wrong with its own entries."""

dataset = Table(
    "dataset",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("source", Json({"kind": str, "place": str}), nullable=False),  # never a credential
    Column("id_column", Text, nullable=False),
    # The first of them groups.
    Column("subjects", Json([{"column": str, "type": str}]), nullable=False),
    # The types as Arrow names them.
    Column("columns", Json([{"name": str, "type": str}]), nullable=False),
    Column("n_buckets", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("salt", String(64)),  # of the commitment to it in the receipts of the last erasure
    Column("created_at", Moment, nullable=False),
)

dataset_version = Table(
    "dataset_version",
    metadata,
    Column("dataset_id", ForeignKey("dataset.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("cause", String(16), nullable=False),  # add, append, sync
    Column("n_records", BigInteger, nullable=False),  # when it was made
    Column("n_suppressed", BigInteger, nullable=False),  # records dropped on the way in
    # Of this version: whole numbers may be any numbers in a later one.
    Column("columns", Json([{"name": str, "type": str}])),
    Column("created_at", Moment, nullable=False),
)

# A Parquet file with records of one bucket (a hash of their first subject). It belongs to the
# versions from `since` up to, and without, `until`; an erasure replaces it in all of them.
fragment = Table(
    "fragment",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("dataset_id", ForeignKey("dataset.id"), nullable=False),
    Column("bucket", Integer, nullable=False),
    Column("since", Integer, nullable=False),
    Column("until", Integer),
    Column("key", String(200), nullable=False, unique=True),
    Column("sha256", String(64), nullable=False),
    Column("n_records", BigInteger, nullable=False),
    Index("ix_fragment_dataset_bucket", "dataset_id", "bucket"),
)

# Who a token belongs to. A subject is a name for tokens that were linked, and nothing else.
identity = Table(
    "identity",
    metadata,
    Column("token", String(64), primary_key=True),
    Column("type", String(64), nullable=False),
    Column("subject", String(32), nullable=False, index=True),
)

# In which buckets of which data sets a token occurs, in any fragment that is still kept.
holding = Table(
    "holding",
    metadata,
    Column("token", String(64), primary_key=True),
    Column("dataset_id", ForeignKey("dataset.id"), primary_key=True),
    Column("bucket", Integer, primary_key=True),
)

# Whose records are kept out. Who came by an exported list may be of a request unknown here.
suppression = Table(
    "suppression",
    metadata,
    Column("token", String(64), primary_key=True),
    Column("type", String(64), nullable=False),
    Column("request_id", String(40), nullable=False, index=True),
    Column("since", Moment, nullable=False),
)

# The log holds a commitment to all that a request keeps out, under a salt that is nowhere else.
suppression_salt = Table(
    "suppression_salt",
    metadata,
    Column("request_id", String(40), primary_key=True),
    Column("salt", String(64), nullable=False),
    Column("n_tokens", BigInteger, nullable=False),  # committed to
)

model = Table(
    "model",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),  # estimator, entry, command, uncovered
    Column("recipe", Json({"kind": str}), nullable=False),
    Column("features", Json([str])),  # columns; None where the recipe chooses
    Column("target", Text),
    Column("datasets", Json([int]), nullable=False),  # their ids
    Column("state", String(16), nullable=False),  # ready, retired, uncovered
    Column("version", Integer, nullable=False),  # 0: none yet
    Column("hook", Text),  # a command that runs after an update
    Column("created_at", Moment, nullable=False),
)

# The salt of a version's commitment goes when the version is superseded.
model_version = Table(
    "model_version",
    metadata,
    Column("model_id", ForeignKey("model.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("cause", String(16), nullable=False),  # fit, erase
    Column("dataset_versions", Json([int]), nullable=False),  # as in model.datasets
    Column("key", String(200)),
    Column("sha256", String(64)),
    Column("salt", String(64)),
    Column("commitment", String(64)),
    Column("algorithm", Text, nullable=False),  # what digest() puts before the colon
    Column("software", Json({}), nullable=False),  # versions of packages it was made with
    Column("n_records", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("superseded_at", Moment),
)

# How long things took, for estimates: per model, or per data set where the model is None.
measurement = Table(
    "measurement",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("model_id", ForeignKey("model.id")),
    Column("dataset_id", ForeignKey("dataset.id")),
    Column("kind", String(16), nullable=False),  # fit, delete, refit, retrain, rewrite
    Column("n_records", BigInteger, nullable=False),
    Column("n_deleted", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("at", Moment, nullable=False),
)

# `tokens` and `condition` say what to erase; the log holds a commitment to them, under `salt`.
# They go when the request ends, and the salt with them.
request = Table(
    "request",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("state", String(16), nullable=False, index=True),
    Column("regulation", String(8), nullable=False),
    Column("received_at", Moment, nullable=False),
    Column("due_at", Moment),
    Column("extended_at", Moment),
    Column("extension", Text),
    Column("hold", Text),
    Column("reason", Text),  # of a denial or cancellation
    Column("type", String(64)),
    Column("types", Json([str])),  # that the identity was looked for under; it stays
    Column("tokens", Json([[str]])),  # each a type and a token
    Column("condition", Json({"dataset": int, "where": str})),
    Column("salt", String(64)),
    Column("batch", String(40), index=True),
    Column("matched", BigInteger),  # records found, once it is processed
    Column("changed_at", Moment, nullable=False),
    Column("completed_at", Moment),
)

# One per request and target: what was done, or that it failed, and is tried again.
task = Table(
    "task",
    metadata,
    Column("request_id", ForeignKey("request.id"), primary_key=True),
    Column("target", String(8), primary_key=True),  # dataset, model
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),  # failed, done
    Column("treatment", String(16)),  # rewritten, deleted, refitted, retrained, retired, ...
    Column("exactness", String(32)),
    Column("n_records", BigInteger),  # of this request
    Column("seconds", Float),  # of the whole batch on this target
    Column("before", String(64)),  # commitments
    Column("after", String(64)),
)

# What went wrong with a model or data set, in batches of workers. Who needs it waits until then.
failure = Table(
    "failure",
    metadata,
    Column("target", String(8), primary_key=True),  # dataset, model
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("failed_at", Moment, nullable=False),
    Column("again_at", Moment),  # None: not before somebody says so
)

# A model of the batch that is under way, to be prepared by whichever worker takes it.
step = Table(
    "step",
    metadata,
    Column("model_id", ForeignKey("model.id"), primary_key=True),
    Column("batch", String(40), nullable=False),
    Column("wanted_key", String(200), nullable=False),  # a file that says which records go
    Column("wanted_sha256", String(64), nullable=False),
    Column("state", String(16), nullable=False),  # planned, done, failed
    Column("worker", String(200)),
    Column("error", Text),
    Column("key", String(200)),  # of the model that was made
    Column("result", Json({"treatment": str})),
)

# Who has what, or waits for it: see `erasable.workspace.locking.leases`.
lease = Table(
    "lease",
    metadata,
    Column("id", _SERIAL, primary_key=True),
    Column("resource", String(250), nullable=False, index=True),
    Column("exclusive", Boolean, nullable=False),
    Column("turn", BigInteger, nullable=False),  # who has a lower one comes first
    Column("granted", Boolean, nullable=False),
    Column("owner", String(16), nullable=False, index=True),
    Column("number", BigInteger, nullable=False),  # of the lock that the owner's session holds
    Column("label", String(200), nullable=False),  # machine and process
    Column("since", Moment, nullable=False),
    Column("until", Moment, nullable=False),
)

PASSING = frozenset({"lease", "step"})
"""Tables that say what is under way, and nothing that a copy would need."""

receipt = Table(
    "receipt",
    metadata,
    Column("request_id", ForeignKey("request.id"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Artifacts that nothing refers to any more, to be removed.
garbage = Table(
    "garbage",
    metadata,
    Column("key", String(200), primary_key=True),
)

log_entry = Table(
    "log_entry",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(32), nullable=False),
    Column("subject", String(200), nullable=False, index=True),  # what it is about
    Column("body", LargeBinary, nullable=False),
    Column("leaf", LargeBinary, nullable=False),
)

name_columns(metadata)
