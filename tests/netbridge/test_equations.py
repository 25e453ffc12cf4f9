"""Runs of odelab in torch: gradients are those of the steps, for single runs and ensembles."""

import pytest
import torch

import netbridge as nb
import odelab as ol


def predators(t, u, params):
    hares, lynxes = u
    births, meals = params
    return births * hares - meals * hares * lynxes, meals * hares * lynxes - lynxes


LOTKA = ol.Problem(predators, [2.0, 1.0], (0.0, 2.0), (1.5, 1.0))
METHODS = pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
STEPS = ol.fixed(0.05)


def tensor(*rows, **options):
    return torch.tensor(rows, dtype=torch.float64, **options)


@METHODS
@pytest.mark.parametrize("times", [None, [0.7, 1.9]], ids=["end", "times"])
def test_gradients_of_a_run(method, times):
    params, u0 = tensor(1.4, 0.9, requires_grad=True), tensor(2.0, 1.0, requires_grad=True)

    def states(params, u0):
        return nb.solve_with_gradients(LOTKA, method, STEPS, params=params, u0=u0, t_eval=times)

    assert states(params, u0).shape == ((2,) if times is None else (2, 2))
    assert torch.autograd.gradcheck(states, (params, u0))
    assert torch.autograd.gradcheck(lambda params: states(params, u0.detach()), (params,))
    assert torch.autograd.gradcheck(lambda u0: states(params.detach(), u0), (u0,))


@METHODS
@pytest.mark.parametrize("times", [None, [0.7, 1.4, 1.9]], ids=["end", "times"])
def test_gradients_of_an_ensemble(method, times):
    params = tensor([1.4, 0.9], [1.5, 1.0], [1.6, 1.1], [1.2, 0.8], requires_grad=True)
    u0 = tensor([2.0, 1.0], [2.1, 1.0], [2.0, 1.3], [1.0, 1.0], requires_grad=True)

    def states(params, u0):
        return nb.ensemble_with_gradients(LOTKA, method, STEPS, params=params, u0=u0, t_eval=times)

    assert states(params, u0).shape == ((4, 2) if times is None else (4, 3, 2))
    assert torch.autograd.gradcheck(states, (params, u0))


def test_an_ensemble_has_the_gradients_of_its_runs():
    params = tensor([1.4, 0.9], [1.5, 1.0], requires_grad=True)
    nb.ensemble_with_gradients(LOTKA, ol.DOPRI5, STEPS, params=params, t_eval=[1.0, 2.0]).square().sum().backward()
    for row, gradient in zip(params.detach(), params.grad, strict=True):
        one = row.clone().requires_grad_()
        nb.solve_with_gradients(LOTKA, ol.DOPRI5, STEPS, params=one, t_eval=[1.0, 2.0]).square().sum().backward()
        torch.testing.assert_close(one.grad, gradient, rtol=1e-9, atol=1e-9)


def test_a_fit_comes_back_to_the_rates():
    truth, times = tensor(1.5, 1.0), [0.5, 1.0, 1.5, 2.0]
    measured = nb.solve_with_gradients(LOTKA, ol.DOPRI5, params=truth, t_eval=times)
    rates = tensor(1.2, 1.3, requires_grad=True)
    optimiser = torch.optim.LBFGS([rates], max_iter=60, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def loss():
        optimiser.zero_grad()
        apart = nb.solve_with_gradients(LOTKA, ol.DOPRI5, params=rates, t_eval=times) - measured
        total = apart.square().sum()
        total.backward()
        return total

    optimiser.step(loss)
    torch.testing.assert_close(rates.detach(), truth, rtol=1e-5, atol=0.0)


def test_precision_is_that_of_what_is_given():
    rates = torch.tensor([1.5, 1.0], requires_grad=True)
    end = nb.solve_with_gradients(LOTKA, ol.DOPRI5, params=rates)
    end.sum().backward()
    assert end.dtype == rates.grad.dtype == torch.float32
    without = nb.solve_with_gradients(LOTKA, ol.DOPRI5, params=rates.detach())
    assert not without.requires_grad


def explosion(t, u, params):
    return (params[0] * u[0] * u[0],)


def test_what_cannot_be_is_said():
    with pytest.raises(TypeError, match="`params` must be a tensor, got tuple"):
        nb.solve_with_gradients(LOTKA, ol.DOPRI5, params=(1.0, 2.0))
    with pytest.raises(TypeError, match="gradients need `u0` or `params`"):
        nb.solve_with_gradients(LOTKA, ol.DOPRI5)
    problem = ol.Problem(explosion, [1.0], (0.0, 2.0), params=1.0)
    rates = tensor([0.1], [1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="the first is run 1"):
        nb.ensemble_with_gradients(problem, ol.DOPRI5, params=rates)
    with pytest.raises(ol.RunFailed):
        nb.solve_with_gradients(problem, ol.DOPRI5, params=rates[1])
