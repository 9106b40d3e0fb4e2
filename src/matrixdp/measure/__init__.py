"""The measurement of a plan on a table: calibration, authorization, reading, noise, and the promise."""
