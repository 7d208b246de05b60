"""Keep good documents; record every decision."""
