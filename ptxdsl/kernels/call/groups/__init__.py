"""Calls of products of groups: lists, rows one behind the other, and scales."""
