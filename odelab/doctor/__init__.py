"""The doctor: is a problem stiff at a tolerance, where and in what, what does that cost, and which method to take"""
