"""The subcommands of `llmc bench`, one module each."""
