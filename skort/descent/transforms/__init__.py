"""What is put around an optimizer: clipping, weight decay, the l1 term's soft threshold, averaging."""
