"""What runs beside the threads: copies."""
