"""Kernels that decide on candidates in plain surroundings: lists of personal data have millions.

Each kernel returns, for candidates int64 [n, 3] (row, first byte, end), the end of the span that
begins where the candidate does, REFUSED, or UNSURE where only the check of the scan can tell. One
for candidates with many spans returns these; one may move the start of an accepted candidate.
"""
