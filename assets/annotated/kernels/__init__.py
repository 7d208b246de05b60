"""Compiled kernels of annotations: integer arithmetic only, equal on every machine."""

from assets.filtered import kernels as filtered_kernels
from assets.text import kernels as text_kernels
from resources.kernel_cache import keep_compiled

keep_compiled(__file__, uses=[filtered_kernels.__file__, text_kernels.__file__])
