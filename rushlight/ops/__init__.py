"""The ops: a table, a file a subject, and the families that make functions of its entries."""
