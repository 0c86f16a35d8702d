"""Transactions: which partitions a transactional id writes to, and how that ends."""
