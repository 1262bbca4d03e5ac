"""Scaling models, one file each: `MODEL` is a `traceforge.forecast.model.ScalingModel`."""
