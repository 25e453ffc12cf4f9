"""torchode: a batch of runs, each with its own step, in lock-step on one thread."""

NAME = "torchode Dopri5"


def ensemble(problem, u0, params, rtol, atol, first_step):
    import torch
    import torchode

    torch.set_num_threads(1)
    p = tuple(torch.tensor(column, dtype=torch.float64) for column in params.T)

    def slope(t, u):
        return torch.stack(problem.rhs(t, u.unbind(1), p), dim=1)

    term = torchode.ODETerm(slope)
    controller = torchode.IntegralController(atol=atol, rtol=rtol, term=term)
    solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), controller)
    start = torch.tensor(u0, dtype=torch.float64)
    ends = torch.full((len(u0),), problem.t_span[1], dtype=torch.float64)
    begin = torch.full((len(u0),), problem.t_span[0], dtype=torch.float64)
    whole = torchode.InitialValueProblem(y0=start, t_start=begin, t_end=ends, t_eval=ends[:, None])
    first = torch.full((len(u0),), first_step, dtype=torch.float64)

    def call():
        with torch.no_grad():
            solution = solver.solve(whole, dt0=first)
        if int(solution.status.max()) != 0:
            raise RuntimeError(f"torchode status {solution.status.max()}")
        return solution.ys[:, -1].numpy()

    return call
