"""In which columns an identity was looked for, and which buckets files have left.

Older versions kept tokens of people who had no record left. Any bucket may have some: all of them
are noted, and the next batch looks them through.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the column and the table."""
    op.add_column("request", sa.Column("searched", sa.JSON(), nullable=True))
    op.create_table(
        "vacated",
        sa.Column("dataset_id", SERIAL, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name=op.f("fk_vacated_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", "bucket", name=op.f("pk_vacated")),
    )
    op.execute("INSERT INTO vacated SELECT DISTINCT dataset_id, bucket FROM holding")
