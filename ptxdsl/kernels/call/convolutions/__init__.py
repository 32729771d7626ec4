"""Calls of conv2d(): images and filters are checked, and what brings them is chosen."""
