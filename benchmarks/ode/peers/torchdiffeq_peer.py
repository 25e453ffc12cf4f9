"""torchdiffeq: dopri5 on the processor, one thread."""

NAME = "torchdiffeq dopri5"


def single(problem, rtol, atol):
    import torch
    from torchdiffeq import odeint

    torch.set_num_threads(1)
    u0 = torch.tensor(problem.u0, dtype=torch.float64)
    times = torch.tensor(problem.t_span, dtype=torch.float64)

    def slope(t, u):
        return torch.stack(problem.rhs(t, u, problem.params))

    def call():
        with torch.no_grad():
            return odeint(slope, u0, times, rtol=rtol, atol=atol, method="dopri5")[-1].numpy()

    return call
