"""Options of kernels: compiled once a machine and kept in a file, run without the interpreter lock.

numba counts the references to every array that a function receives, with an atomic instruction for
each array of each call, of inlined functions too: a quarter of the time of `page_form`. A function
that makes no array can do without: `KERNEL`. `_nrt` is an option of numba without a promise: the
version is pinned in pyproject.toml, and without the option all results stay the same. A function
that makes arrays, and one that is called too seldom for a difference, has `ARRAY_KERNEL`.

No kernel is called from C: that entry is left out, which saves 8 % of the time to compile. An array
that is assigned to a slice takes 2 to 3 s more, for the text of an error that cannot occur: loops
copy single numbers.
"""

ARRAY_KERNEL = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
ARRAY_INLINED = {**ARRAY_KERNEL, "forceinline": True}
KERNEL = {**ARRAY_KERNEL, "_nrt": False}
INLINED = {**KERNEL, "forceinline": True}
