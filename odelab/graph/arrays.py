from odelab.graph.nodes import Array, elementwise, total
