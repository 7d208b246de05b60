"""Compiled kernel of the counts behind the scores of pages."""

from assets.text import kernels as text_kernels
from resources.kernel_cache import keep_compiled

IS_COLD = keep_compiled(__file__, uses=[text_kernels.__file__])
