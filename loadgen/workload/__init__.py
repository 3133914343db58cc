"""Workloads as data: what is sent, how many at once, in which order the engines take turns."""
