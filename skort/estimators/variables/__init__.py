"""
The variables of a training, the losses that are measured in them, and the faults of custom losses
and penalties.
"""
