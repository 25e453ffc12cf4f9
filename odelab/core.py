"""The one source: an explicit step, and the loop that proposes, steps, judges and records.

Every function here is closed: no imports, no module globals, helpers arrive as arguments. A state needs only `+`
and multiplication by a number, so NumPy arrays and torch tensors (with gradients) run these functions as they are,
and `odelab.compiled` hands the same functions to numba unchanged.

The clock and the gain are two things: `dt` moves time, `h` multiplies the slope. For an ODE they are equal; a layer
of a residual network has dt = 1, and h is whatever broadcasts over its features.
"""


def combine(weights, slopes, count):
    """sum_j weights[j] * slopes[j] over j < count; skips zeros and does not multiply by one, so worlds stay equal."""
    total = slopes[0]
    empty = True
    for j in range(count):
        weight = weights[j]
        if weight != 0.0:
            term = slopes[j]
            if weight != 1.0:
                term = weight * term
            if empty:
                total = term
                empty = False
            else:
                total = total + term
    return total


def rk_step(combine, rhs, params, t, u, slope, dt, h, tableau):
    """One explicit Runge-Kutta step from `u`, whose slope is known: the new state, S = sum b_i k_i, errors and all k_i.

    `tableau` is (a, b, e, c, embedded, fsal) with square rows of floats; e holds a row b - b_low for each estimate of
    the error (one, or a pair). Without an embedded row no error is formed, and S stands in its place.
    """
    a, b, e, c, embedded, fsal = tableau
    stages = len(b)
    slopes = [slope]
    inner = u
    for i in range(1, stages):
        inner = u + h * combine(a[i], slopes, i)
        slopes.append(rhs(t + c[i] * dt, inner, params))
    mean_slope = combine(b, slopes, stages)
    u_new = u + h * mean_slope
    if fsal:  # first same as last: the last stage was evaluated at the new state, which is kept bit for bit
        u_new = inner
    errors = [mean_slope]
    if embedded:
        errors = [h * combine(row, slopes, stages) for row in e]
    return u_new, mean_slope, errors, slopes


def integrate(
    step,
    combine,
    rhs,
    params,
    tableau,
    propose,
    judge,
    project,
    record,
    carry,
    memory,
    t,
    t1,
    u,
    slope,
    fresh,
    attempts,
):
    """Step from t to t1 in at most `attempts` attempts; time may run either way.

    propose(memory, t, t1, u, slope) -> (dt, h, memory)       before the step (feed-forward control)
    judge(memory, dt, errors, u, u_new) -> (accept, memory)   after it (feedback): 1 accept, 0 reject, -1 give up
    project(u) -> u                                           last, on the new state (a ReLU, a positivity)
    record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new) -> carry    once per accepted step

    `fresh` tells that `slope` is already the right-hand side at (t, u). Returns (status, t, u, slope, fresh, memory,
    carry, rejected, evaluations) with status 0: attempts spent, 1: t1 reached, 2: the step fell below the spacing of
    t, 3: given up by the judge. What is returned can be handed in again to go on.
    """
    fsal = tableau[5]
    stages = len(tableau[1])
    status = 0
    rejected = 0
    evaluations = 0
    for _ in range(attempts):
        if t == t1:
            break
        if not fresh:
            slope = rhs(t, u, params)
            evaluations += 1
            fresh = True
        dt, h, memory = propose(memory, t, t1, u, slope)
        t_new = t + dt
        if dt == t1 - t:
            t_new = t1
        if t_new == t:
            status = 2
            break
        u_new, mean_slope, errors, slopes = step(combine, rhs, params, t, u, slope, dt, h, tableau)
        evaluations += stages - 1
        projected = project(u_new)
        accept, memory = judge(memory, dt, errors, u, projected)
        if accept < 0:
            status = 3
            break
        if accept == 0:
            rejected += 1
            continue
        carry = record(carry, memory, t, dt, h, u, slopes, mean_slope, projected)
        fresh = fsal and projected is u_new
        if fresh:
            slope = slopes[stages - 1]
        t = t_new
        u = projected
    if t == t1:
        status = 1
    return status, t, u, slope, fresh, memory, carry, rejected, evaluations


def unprojected(u):
    return u


def nothing_recorded(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
    return carry
