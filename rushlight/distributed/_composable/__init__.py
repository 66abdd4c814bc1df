"""torch's private home of `fully_shard`, which libraries import."""
