"""Options of kernels that make no array of their own.

numba counts the references to every array that a function receives, with an atomic instruction for
each array of each call, of inlined functions too: a quarter of the time of `page_form`. A function
that makes no array does without. `_nrt` is an option of numba without a promise: the version is
pinned in pyproject.toml, and without the option all results stay the same.
"""

KERNEL = {"cache": True, "nogil": True, "_nrt": False}
INLINED = {**KERNEL, "forceinline": True}
