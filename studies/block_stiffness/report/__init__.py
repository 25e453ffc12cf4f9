"""What the report of the block study shows: its sections, and the figures and tables that they put in order.

Nothing is measured or judged here.
"""
