"""Calls of conv2d() and its gradients: checks, the choice of the kernel, and launches."""
