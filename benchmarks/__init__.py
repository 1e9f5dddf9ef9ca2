"""What Holdfast costs, beside others, in one run. Every module has `rows()`; `python -m benchmarks` runs them.

A module may take `quick` (a small size for tests) and `data` (a folder for large files), and may have
`plot(rows, folder)`, which draws its figures and returns their names.
"""
