"""torchdiffeq: dopri5 on the processor, one thread."""

NAME = "torchdiffeq dopri5"


def single(problem, rtol, atol):
    import torch

    end, params = end_of(problem, rtol, atol, "dopri5")

    def call():
        with torch.no_grad():
            return end(params).numpy()

    return call


def sensitivities(problem, rtol, atol, method="dopri5"):
    """Its steps, differentiated backward once for each component; their errors are not controlled."""
    import torch

    end, params = end_of(problem, rtol, atol, method)

    def call():
        watched = params.clone().requires_grad_()
        rows = [torch.autograd.grad(x, watched, retain_graph=True)[0] for x in end(watched)]
        return torch.stack(rows).numpy()

    return call


def end_of(problem, rtol, atol, method):
    """(The end state as a function of the parameters, these.)"""
    import torch
    from torchdiffeq import odeint

    torch.set_num_threads(1)
    u0, times, params = (torch.tensor(x, dtype=torch.float64) for x in (problem.u0, problem.t_span, problem.params))

    def end(params):
        def slope(t, u):
            return torch.stack(problem.rhs(t, u, params))

        return odeint(slope, u0, times, rtol=rtol, atol=atol, method=method)[-1]

    return end, params
