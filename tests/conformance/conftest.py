"""The harness has tests of its own, which test_conformance_floor.py runs in another process."""

collect_ignore = ["harness"]
