"""Kernels and parts of kernels that every NVIDIA GPU target shares: no instruction of one architecture."""
