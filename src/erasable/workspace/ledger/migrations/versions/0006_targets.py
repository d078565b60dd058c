"""Targets: places outside of the workspace, and what each request still owes them."""

import sqlalchemy as sa
from alembic import op

from erasable.workspace.ledger.kinds import Moment

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the table of targets, and columns of tasks."""
    op.create_table(
        "target",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("subjects", sa.JSON(), nullable=False),
        sa.Column("action", sa.String(length=8), nullable=False),
        sa.Column("keep", sa.JSON(), nullable=False),
        sa.Column("cascade", sa.JSON(), nullable=False),
        sa.Column("may_empty", sa.JSON(), nullable=False),
        sa.Column("plan_key", sa.String(length=200), nullable=True),
        sa.Column("plan_sha256", sa.String(length=64), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_target")),
        sa.UniqueConstraint("name", name=op.f("uq_target_name")),
    )
    op.add_column("task", sa.Column("tokens", sa.JSON(), nullable=True))
    op.add_column("task", sa.Column("seal", sa.String(length=64), nullable=True))
    op.add_column("task", sa.Column("reason", sa.Text(), nullable=True))
