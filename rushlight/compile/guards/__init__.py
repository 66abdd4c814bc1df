"""What a program relies on, and the test of it."""
