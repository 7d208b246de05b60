"""Compiled loops of tokenization."""

from assets.text import kernels as text_kernels
from resources.kernel_cache import keep_compiled

keep_compiled(__file__, uses=[text_kernels.__file__])
