"""Environment of Alembic, which runs migrations on the connection and transaction it gets."""

from alembic import context

from erasable.workspace.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
