"""Compiled loops of packing."""

from resources.kernel_cache import keep_compiled

keep_compiled(__file__)
