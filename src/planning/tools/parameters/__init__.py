"""Parameter models: what arguments are checked against and become, however a tool is declared."""
