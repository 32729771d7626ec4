"""Calls of products of groups: lists, and rows one behind the other."""
