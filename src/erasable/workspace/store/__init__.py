"""Store of bytes on the disk: every effect on it is one numbered point."""
