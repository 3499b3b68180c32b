"""RMS norm of rows: x * rsqrt(mean(x^2) + eps) * gamma.

One block a row. The row is read once into registers (a vector per thread and turn), its
squares are summed over the block, and the scaled row is written from the same registers.
The floor is the bytes of the row in and out.
"""
