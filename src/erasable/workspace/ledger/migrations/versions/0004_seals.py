"""Keyed hashes of the log's entries, and indexes to find the last entry about something."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them; `erasable.workspace.evidence.seals` fills the column."""
    op.add_column("log_entry", sa.Column("seal", sa.String(length=64), nullable=True))
    op.create_index("ix_log_entry_kind", "log_entry", ["kind"], unique=False)
    op.create_index("ix_log_entry_about", "log_entry", ["subject", "position"], unique=False)
