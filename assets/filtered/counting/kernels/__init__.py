"""Compiled kernels that count as other programs do."""

from assets.filtered import kernels as filter_kernels
from assets.text import kernels as text_kernels
from resources.kernel_cache import keep_compiled

IS_COLD = keep_compiled(__file__, uses=[filter_kernels.__file__, text_kernels.__file__])
