"""Kernels that count the form of pages: `page_form` is where they meet."""
