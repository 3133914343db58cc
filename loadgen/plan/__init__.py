"""How many workers does a load need? Calculated from the measured cost of an event and a request."""

from loadgen.plan.cost import Cost
from loadgen.plan.estimate import Load, Plan, plan_for

__all__ = ["Cost", "Load", "Plan", "plan_for"]
