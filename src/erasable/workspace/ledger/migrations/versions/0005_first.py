"""The first tables: a later migration changes them, never this one.

The revisions 0001 to 0004 were those of versions before any release.
"""

import sqlalchemy as sa
from alembic import op

from erasable.workspace.ledger.kinds import Moment

revision = "0005"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "dataset",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("id_column", sa.Text(), nullable=False),
        sa.Column("subjects", sa.JSON(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("n_buckets", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("salt", sa.String(length=64), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
        sa.UniqueConstraint("name", name=op.f("uq_dataset_name")),
    )
    op.create_table(
        "garbage",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_garbage")),
    )
    op.create_table(
        "identity",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_identity")),
    )
    op.create_index(op.f("ix_identity_subject"), "identity", ["subject"], unique=False)
    op.create_table(
        "log_entry",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("leaf", sa.LargeBinary(), nullable=False),
        sa.Column("seal", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_log_entry")),
    )
    op.create_index(op.f("ix_log_entry_subject"), "log_entry", ["subject"], unique=False)
    op.create_index("ix_log_entry_kind", "log_entry", ["kind"], unique=False)
    op.create_index("ix_log_entry_about", "log_entry", ["subject", "position"], unique=False)
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_meta")),
    )
    op.create_table(
        "model",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("recipe", sa.JSON(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=True),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("datasets", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("hook", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
        sa.UniqueConstraint("name", name=op.f("uq_model_name")),
    )
    op.create_table(
        "request",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("regulation", sa.String(length=8), nullable=False),
        sa.Column("received_at", Moment(), nullable=False),
        sa.Column("due_at", Moment(), nullable=True),
        sa.Column("extended_at", Moment(), nullable=True),
        sa.Column("extension", sa.Text(), nullable=True),
        sa.Column("hold", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("type", sa.String(length=64), nullable=True),
        sa.Column("types", sa.JSON(), nullable=True),
        sa.Column("tokens", sa.JSON(), nullable=True),
        sa.Column("condition", sa.JSON(), nullable=True),
        sa.Column("salt", sa.String(length=64), nullable=True),
        sa.Column("batch", sa.String(length=40), nullable=True),
        sa.Column("matched", sa.BigInteger(), nullable=True),
        sa.Column("changed_at", Moment(), nullable=False),
        sa.Column("completed_at", Moment(), nullable=True),
        sa.Column("searched", sa.JSON(), nullable=True),
        sa.Column("corrects", sa.JSON(), nullable=True),
        sa.Column("values_key", sa.String(length=200), nullable=True),
        sa.Column("values_sha256", sa.String(length=64), nullable=True),
        sa.Column("reach", sa.Integer(), nullable=True),
        sa.Column("followed", sa.JSON(), nullable=True),
        sa.Column("reference", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
    )
    op.create_index(op.f("ix_request_batch"), "request", ["batch"], unique=False)
    op.create_index(op.f("ix_request_state"), "request", ["state"], unique=False)
    op.create_table(
        "suppression",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=40), nullable=False),
        sa.Column("since", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_suppression")),
    )
    op.create_index(op.f("ix_suppression_request_id"), "suppression", ["request_id"], unique=False)
    op.create_table(
        "suppression_salt",
        sa.Column("request_id", sa.String(length=40), nullable=False),
        sa.Column("salt", sa.String(length=64), nullable=False),
        sa.Column("n_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_suppression_salt")),
    )
    op.create_table(
        "dataset_version",
        sa.Column("dataset_id", SERIAL, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("n_records", sa.BigInteger(), nullable=False),
        sa.Column("n_suppressed", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("n_added", sa.BigInteger(), nullable=True),
        sa.Column("n_changed", sa.BigInteger(), nullable=True),
        sa.Column("n_removed", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_dataset_version_dataset_id")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "number", name=op.f("pk_dataset_version")),
    )
    op.create_table(
        "fragment",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("dataset_id", SERIAL, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=True),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("n_records", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_fragment_dataset_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fragment")),
        sa.UniqueConstraint("key", name=op.f("uq_fragment_key")),
    )
    op.create_index(
        "ix_fragment_dataset_bucket", "fragment", ["dataset_id", "bucket"], unique=False
    )
    op.create_table(
        "holding",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("dataset_id", SERIAL, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name=op.f("fk_holding_dataset_id")),
        sa.PrimaryKeyConstraint("token", "dataset_id", "bucket", name=op.f("pk_holding")),
    )
    op.create_table(
        "measurement",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("model_id", SERIAL, nullable=True),
        sa.Column("dataset_id", SERIAL, nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("n_records", sa.BigInteger(), nullable=False),
        sa.Column("n_deleted", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_measurement_dataset_id")
        ),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_measurement_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement")),
    )
    op.create_table(
        "model_version",
        sa.Column("model_id", SERIAL, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("dataset_versions", sa.JSON(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("salt", sa.String(length=64), nullable=True),
        sa.Column("commitment", sa.String(length=64), nullable=True),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column("software", sa.JSON(), nullable=False),
        sa.Column("n_records", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("superseded_at", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_model_version_model_id")),
        sa.PrimaryKeyConstraint("model_id", "number", name=op.f("pk_model_version")),
    )
    op.create_table(
        "receipt",
        sa.Column("request_id", sa.String(length=40), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["request_id"], ["request.id"], name=op.f("fk_receipt_request_id")),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_receipt")),
    )
    op.create_table(
        "task",
        sa.Column("request_id", sa.String(length=40), nullable=False),
        sa.Column("target", sa.String(length=8), nullable=False),
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("treatment", sa.String(length=16), nullable=True),
        sa.Column("exactness", sa.String(length=32), nullable=True),
        sa.Column("n_records", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("before", sa.String(length=64), nullable=True),
        sa.Column("after", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["request_id"], ["request.id"], name=op.f("fk_task_request_id")),
        sa.PrimaryKeyConstraint("request_id", "target", "target_id", name=op.f("pk_task")),
    )
    op.create_table(
        "failure",
        sa.Column("target", sa.String(length=8), nullable=False),
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("failed_at", Moment(), nullable=False),
        sa.Column("again_at", Moment(), nullable=True),
        sa.PrimaryKeyConstraint("target", "target_id", name=op.f("pk_failure")),
    )
    op.create_table(
        "step",
        sa.Column("model_id", SERIAL, nullable=False),
        sa.Column("batch", sa.String(length=40), nullable=False),
        sa.Column("wanted_key", sa.String(length=200), nullable=False),
        sa.Column("wanted_sha256", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("key", sa.String(length=200), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_step_model_id")),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_step")),
    )
    op.create_table(
        "lease",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("resource", sa.String(length=250), nullable=False),
        sa.Column("exclusive", sa.Boolean(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("granted", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(length=16), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("since", Moment(), nullable=False),
        sa.Column("until", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease")),
    )
    op.create_index(op.f("ix_lease_owner"), "lease", ["owner"], unique=False)
    op.create_index(op.f("ix_lease_resource"), "lease", ["resource"], unique=False)
    op.create_table(
        "vacated",
        sa.Column("dataset_id", SERIAL, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name=op.f("fk_vacated_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", "bucket", name=op.f("pk_vacated")),
    )
