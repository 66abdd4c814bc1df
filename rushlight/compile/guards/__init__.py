"""The facts that a program relies on, and their tests."""
