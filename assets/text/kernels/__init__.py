"""Compiled loops over text that several stages share."""

from resources.kernel_cache import keep_compiled

keep_compiled(__file__)
