"""Forward sensitivities: how a solution changes with its initial state and its parameters, and what follows from that.

The state u and the columns S = du/d(parameter) are one system, u' = f, S' = f_u S + f_p, whose right-hand side is made
of the graph of f. So every method, every engine and the lanes of ensembles run it as they run any other system, and a
step of it is the derivative of the step of u."""
