"""The doctor: for each break of readiness its cause, its evidence, and the line that repairs it."""
