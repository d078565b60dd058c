"""Several workers: their leases, what is to be done of a batch, and what failed."""

import sqlalchemy as sa
from alembic import op

from erasable.workspace.ledger.kinds import Moment

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make their tables."""
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
