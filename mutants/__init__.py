"""Plant small faults in the arithmetic of the promises, one at a time, and see whether the tests notice."""
