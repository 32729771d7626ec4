"""Calls with groups: lists of problems, groups of rows, ranges of K."""
