"""Quality beside speed: exam items, what is read out of an answer, repetition, paired statistics.

All of it is pure; what asks the engines is elsewhere."""
