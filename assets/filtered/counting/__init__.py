"""Scores as other programs count them, and the passes behind them."""
