"""The stream as it runs: rates and verdicts, lag, calibration."""
