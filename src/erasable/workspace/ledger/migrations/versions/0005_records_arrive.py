"""Policies of models, in what a version of a data set differs, corrections, and whole persons."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of older versions nobody knows in what they differ."""
    op.add_column("model", sa.Column("policy", sa.String(length=16), nullable=True))
    for name in ("n_added", "n_changed", "n_removed"):
        op.add_column("dataset_version", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("request", sa.Column("corrects", sa.JSON(), nullable=True))
    op.add_column("request", sa.Column("values_key", sa.String(length=200), nullable=True))
    op.add_column("request", sa.Column("values_sha256", sa.String(length=64), nullable=True))
    op.add_column("request", sa.Column("reach", sa.Integer(), nullable=True))
    op.add_column("request", sa.Column("followed", sa.JSON(), nullable=True))
    op.add_column("request", sa.Column("reference", sa.String(length=200), nullable=True))
