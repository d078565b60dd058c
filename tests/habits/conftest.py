"""The scripts of the gallery are run by `test_gallery`, and not collected."""

collect_ignore_glob = ["gallery/*"]
