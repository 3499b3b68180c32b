"""Handlers of torch operators, one file per family; every module here is loaded by the registry."""
