"""The main study: stiffness of networks trained on CIFAR-10 and what it says about the first paper's claims.

`__main__.py` is the door; tables, findings and figures each have a file."""
