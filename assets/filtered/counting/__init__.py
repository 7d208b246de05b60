"""How programs count what the rules limit: scores per program, and the passes behind them."""
