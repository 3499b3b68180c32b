"""Quantization: formats, and the arithmetic of codes and scales."""
