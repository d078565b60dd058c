"""Store of artifacts and files of a workspace, on the disk or in an object store."""
