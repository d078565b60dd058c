"""How bytes reach the disk, and leave it: every effect is one numbered point."""
