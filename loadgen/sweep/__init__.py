"""Sweeps: a load raised step by step, each step a run, until an engine gives no more or breaks its SLO."""

from loadgen.sweep.plan import Plan, Step, Stop, doubling, next_step
from loadgen.sweep.point import MET, NOT_MET, UNDECIDED, Point

__all__ = ["MET", "NOT_MET", "UNDECIDED", "Plan", "Point", "Step", "Stop", "doubling", "next_step"]
