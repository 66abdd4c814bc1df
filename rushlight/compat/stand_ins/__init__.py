"""Parts of torch that mean nothing here, for programs that ask for them: they say that they are not available."""
