"""The first tables."""

from alembic import op

from erasable.workspace.ledger.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables.

    A later migration must not call this: once there is a second, the tables of the first are
    written out here, as they were.
    """
    metadata.create_all(op.get_bind())
