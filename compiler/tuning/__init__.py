"""Finds the fastest schedule of each linear of a model: `llmc tune`.

problems.py    which linears there are, and the canonical kernel of each
candidates.py  compiles schedules that are worth a measurement; no GPU
timing.py      checks and times them; a GPU with torch, no compiler
table.py       picks the fastest and writes the table that `llmc compile` reads; neither
cuda.py        launches cubins
"""
