"""Checkpoints that somebody else quantized: what their layers store, and what that means."""
