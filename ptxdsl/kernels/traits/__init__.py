"""What a kernel is made for, and what it takes."""
