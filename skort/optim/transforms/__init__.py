"""What is put around an optimizer: clipping, weight decay, the terms of the penalty, averaging."""
