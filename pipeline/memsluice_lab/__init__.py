"""Experiments: labelled streams through the gate's own core, baselines, and the figures that are measured."""
