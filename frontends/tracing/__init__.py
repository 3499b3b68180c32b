"""From a torch module to a module of the torch dialect."""
