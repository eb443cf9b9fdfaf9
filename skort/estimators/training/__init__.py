"""
The one way through a training: parameters resolved, variables changed,
steps made, a result returned.
"""
