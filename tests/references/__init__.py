"""Plain NumPy float64 references: slow, obvious loops that share no code with jaxsolvers."""
