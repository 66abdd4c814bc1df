"""From the text of a loop to machine code, and when that is worth while."""
