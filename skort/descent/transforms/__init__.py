"""What is put around an optimizer: clipping, the l1 term's soft threshold, averaging."""
