"""Every automatic decision of a training: a file for each matter, a function for each rule."""
