"""The one source of all engines: explicit, linearly and diagonally implicit steps, and the loop that repeats them.

The loop proposes a step size, takes the step, judges it and records it. Every function here is closed: it uses no
other package, and its helpers are passed as arguments. A state needs only `+` and multiplication by a number. NumPy
arrays and torch tensors (with gradients) can therefore be used directly, and `odelab.engines.numba` compiles the same
functions unchanged.

A step has two sizes: `dt` is added to the time, and `h` multiplies the slope. For an ODE they are equal. A layer of a
residual network has dt = 1, and its h is a number or a tensor that broadcasts over its features.
"""

from typing import Any, NamedTuple

NAN = float("nan")
CONTRACTION = 0.5  # a stage converges where its last correction is at most this part of its first one,
ROUNDING = 1e-10  # or at most this part of its state: smaller ones count in the estimate of the error alone
# Twin stages whose states lie nearer to each other than this share of ||u||, 8,192 spacings of doubles, are not used:
# the difference of their slopes would be rounding from the fourth digit on.
APART = 2.0**-39
# A search for a state that satisfies algebraic equations: what has come of a pass of Newton's method, and its numbers.
ON_THE_WAY, ARRIVED, LOST = range(3)
PASSES = 400  # no more of them are made
SOLVED = 1e-13  # the last change, over the state
STAGNANT = 1e-8  # the same where it shrinks no more
SMALL = 1e-3  # of the largest component: a change in smaller ones is compared with this
SHORTEST = 2.0**-11  # of a change: no smaller part of it is tried


class Tableau(NamedTuple):
    """The numbers of an explicit Runge-Kutta method, as Python floats.

    a           square rows: the weights of the slopes in each stage's state
    b           the weights of the slopes in the new state
    e           a row b - b_low for each estimate of the error (one, or a pair)
    c           the stages' times, as parts of the step
    embedded    whether the method estimates its error at all; without it, e is not used
    fsal        first same as last: whether the last stage is evaluated at the new state
    """

    a: Any
    b: Any
    e: Any
    c: Any
    embedded: bool
    fsal: bool


class Rosenbrock(NamedTuple):
    """The numbers of a linearly implicit (Rosenbrock) method in transformed form, as Python floats.

    a           square rows: the weights of the increments in each stage's state
    C           square rows: the weights of the increments in each stage's right side, multiplied by gamma
    m           the weights of the increments in the new state
    e           their weights in the estimate of the error
    c           the stages' times, as parts of the step
    d           the weights of the derivative with respect to time
    gamma       the diagonal of the method, M = I - h gamma J
    """

    a: Any
    C: Any
    m: Any
    e: Any
    c: Any
    d: Any
    gamma: float


class Esdirk(NamedTuple):
    """The numbers of a diagonally implicit method whose first stage is explicit and whose last one is the new state.

    a           square rows: the weights of the increments in each stage's state, without the diagonal
    b           the weights of the increments in the new state: the last row of `a`, and gamma
    e           their weights in the estimate of the error
    c           the stages' times, as parts of the step
    start       square rows: the weights of the states of earlier stages in the state from which Newton's method starts
    gamma       the diagonal of the method, M = I - h gamma J
    """

    a: Any
    b: Any
    e: Any
    c: Any
    start: Any
    gamma: float


class State(NamedTuple):
    """Where a run stands; what `integrate` returns can be handed in again to go on.

    t           the time
    u           the state
    slope       the right-hand side at (t, u), or anything where `fresh` is false
    fresh       whether `slope` is known
    memory      what the controller remembers
    """

    t: Any
    u: Any
    slope: Any
    fresh: bool
    memory: Any


class Approach(NamedTuple):
    """Where a search for a state that satisfies algebraic equations stands.

    u        the state
    part     how much of Newton's change is tried next
    moved    1.0 where the state is no longer that with which the search began, else 0.0
    """

    u: Any
    part: Any
    moved: Any


def where(condition, x, y):
    """x where the condition holds, else y; in a graph, and in lanes, both are computed and one is chosen."""
    return x if condition else y


def combine(weights, slopes, count):
    """sum_j weights[j] * slopes[j] over j < count.

    Weights of zero are skipped, and nothing is multiplied by one, so that all engines make the same rounding errors.
    """
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


def change(combine, h, weights, slopes, count):
    """h * sum_j weights[j] * slopes[j] over j < count, as a pair: what all slopes but the last give, and what it gives.

    The slope that was computed last is added last, because everything else is ready before it. The last slope is the
    last one whose weight is not zero; the number in front tells whether there are others.
    """
    last, others = 0, 0
    for j in range(count):
        if weights[j] != 0.0:
            last = j
            others += 1
    others -= 1
    latest = h * slopes[last]
    if weights[last] != 1.0:
        latest = (h * weights[last]) * slopes[last]
    earlier = latest
    if others > 0:
        earlier = h * combine(weights, slopes, last)
    return others, earlier, latest


def moved(combine, u, h, weights, slopes, count):
    """The state u + h * sum_j weights[j] * slopes[j] over j < count."""
    others, earlier, latest = change(combine, h, weights, slopes, count)
    if others > 0:
        u = u + earlier
    return u + latest


def error_of(combine, h, weights, slopes, count):
    """The estimate h * sum_j weights[j] * slopes[j] over j < count."""
    others, earlier, latest = change(combine, h, weights, slopes, count)
    if others > 0:
        return earlier + latest
    return latest


def squared(x):
    """The square of the norm of a row of numbers."""
    return (x * x).sum()


def twin_squares_of(combine, squared, tableau, twins):
    """What tells the spectral radius rho, as a function of (u, h, slopes): rho^2 = stiff / apart, where it is told.

    Two stages of a step at the same time differ only through the Jacobian: rho ~ ||k_i - k_j|| / ||g_i - g_j|| (Hairer
    and Wanner, Solving ODEs II, IV.2), at no extra evaluation. It is not told where their states are too near to each
    other.

    twins    the numbers of the two stages
    """
    a, (first, last) = tableau.a, twins

    def squares(u, h, slopes):
        # The states are formed as in the step, with its rounding, so that their difference belongs to these slopes.
        one = moved(combine, u, h, a[first], slopes, first)
        other = moved(combine, u, h, a[last], slopes, last)
        apart = squared(other - one)
        return squared(slopes[last] - slopes[first]), apart, apart > APART**2 * squared(u)

    return squares


def twin_rate_of(combine, where, squared, tableau, twins):
    """The square of the spectral radius as a function of (u, h, slopes); NaN where the stages do not tell it."""
    squares = twin_squares_of(combine, squared, tableau, twins)

    def rate(u, h, slopes):
        stiff, apart, told = squares(u, h, slopes)
        return where(told, stiff / where(told, apart, 1.0), NAN)

    return rate


def rk_step(combine, rhs, params, t, u, slope, dt, h, tableau):
    """One explicit Runge-Kutta step from `u`, whose slope is known: the new state, S = sum b_i k_i, errors and all k_i.

    Without an embedded method no error is formed, and S stands in its place.
    """
    a, b, e, c, embedded, fsal = tableau
    stages = len(b)
    slopes = [slope]
    inner = u
    for i in range(1, stages):
        inner = moved(combine, u, h, a[i], slopes, i)
        slopes.append(rhs(t + c[i] * dt, inner, params))
    mean_slope = combine(b, slopes, stages)
    u_new = inner
    if not fsal:  # otherwise the last stage was evaluated at the new state, which is kept bit for bit
        u_new = moved(combine, u, h, b, slopes, stages)
    errors = [mean_slope]
    if embedded:
        errors = [error_of(combine, h, row, slopes, stages) for row in e]
    return u_new, mean_slope, errors, slopes


def rk_step_of(combine, tableau):
    """The step of one tableau, as `integrate` takes it."""

    def step(rhs, params, t, u, slope, dt, h):
        u_new, mean_slope, errors, slopes = rk_step(combine, rhs, params, t, u, slope, dt, h, tableau)
        return u_new, mean_slope, errors, slopes, tableau.fsal

    return step


def rosenbrock_step_of(combine, factor, backsub, tableau, weigh=None):
    """The step of one Rosenbrock method: one matrix, I - h gamma J, is factored, and every stage solves with it.

    factor(J, hg) -> lu         the factors of I - hg J, in whatever form `backsub` takes them
    backsub(lu, right) -> x     the solution of (I - hg J) x = right
    weigh(x) -> M x             of a system M u' = f, whose factors are those of M - hg J; None where M = I

    What is known of (t, u) is the slope, the Jacobian and the derivative of the right-hand side with respect to time.
    The form is that of Hairer and Wanner, Solving ODEs II, IV.7, multiplied by h gamma: nothing is divided by h, which
    may therefore be zero, or one number per feature of a network.
    """
    a, C, m, e, c, d, gamma = tableau
    stages = len(m)
    carried = combine if weigh is None else lambda *increments: weigh(combine(*increments))

    def step(rhs, params, t, u, known, dt, h):
        slope, J, slope_t = known
        hg = gamma * h
        lu = factor(J, hg)
        increments = [backsub(lu, hg * (slope + d[0] * dt * slope_t))]
        for i in range(1, stages):
            stage = rhs(t + c[i] * dt, u + combine(a[i], increments, i), params)
            right = hg * (stage + d[i] * dt * slope_t) + carried(C[i], increments, i)
            increments.append(backsub(lu, right))
        change = combine(m, increments, stages)
        error = combine(e, increments, stages)
        return u + change, change / h, [error], increments, False

    return step


def esdirk_step_of(combine, factor, backsub, where, iterations, tableau):
    """The step of one ESDIRK method: M = I - h gamma J is factored once, and Newton's method solves all stages with it.

    factor, backsub     as in `rosenbrock_step_of`
    where               where(condition, x, y): x where the condition holds, else y; None where no step is to be refused
    iterations          how many corrections a stage gets, 2 at least

    The unknown of a stage is its increment k = h f(t + c h, base + gamma k). What the last correction of a stage still
    changes in the new state is added to the estimate of the error. Where a stage does not converge, the new state is
    NaN. The increments returned are those after each correction.
    """
    a, b, e, c, start, gamma = tableau
    stages = len(b)

    def step(rhs, params, t, u, known, dt, h):
        slope, J, _ = known
        lu = factor(J, gamma * h)
        increments, states = [h * slope], [u]
        returned, doubt, converged = [h * slope], 0.0, True
        for i in range(1, stages):
            base = u + combine(a[i], increments, i)
            guess = (combine(start[i], states, i) - base) / gamma
            corrections, iterates = newton(rhs, params, t + c[i] * dt, h, base, gamma, guess, backsub, lu, iterations)
            returned += iterates
            increments.append(iterates[-1])
            states.append(base + gamma * iterates[-1])
            if b[i] != 0.0:
                doubt = doubt + abs(b[i] * corrections[-1])
            if where is not None:
                converged = converged & contracts(corrections[0], corrections[-1], states[-1])
        u_new = states[-1]
        if where is not None:
            u_new = where(converged, 1.0, NAN) * u_new
        error = abs(combine(e, increments, stages)) + doubt
        return u_new, combine(b, increments, stages) / h, [error], returned, False

    return step


def newton(rhs, params, t, h, base, gamma, increment, backsub, lu, iterations):
    """The corrections of Newton's method for k = h f(t, base + gamma k), and what each of them makes of `increment`."""
    corrections, iterates = [], []
    for _ in range(iterations):
        corrections.append(backsub(lu, h * rhs(t, base + gamma * increment, params) - increment))
        increment = increment + corrections[-1]
        iterates.append(increment)
    return corrections, iterates


def approach_of(factor, backsub, is_regular, reduce, spread, where, maximum):
    """One pass of Newton's method, with shortened steps, for the algebraic equations of M u' = f: N' f(t, u + Z y) = 0.

    N and Z are the null vectors of M from the left and from the right. The pass is a function of (rhs, params, t,
    known, now), where `known` is what is known of (t, u) and `now` an `Approach`, and returns (ON_THE_WAY, ARRIVED or
    LOST, the next `Approach`). A state that satisfies the equations but for rounding stays as it is.

    factor(J) -> lu             the factors of N' J Z
    backsub(lu, right) -> y     the solution of N' J Z y = right
    is_regular(lu)              whether N' J Z is regular, so that the index is 1
    reduce(f) -> N' f           spread(y) -> Z y           maximum(x, y)    the larger ones of two rows
    """

    def approach(rhs, params, t, known, now):
        (slope, J, _), (u, part, moved) = known, now
        lu = factor(J)
        if not is_regular(lu):
            return LOST, now
        sizes = abs(u)
        least = SMALL * sizes.max()
        unit = maximum(sizes, where(least > 0.0, least, 1.0))

        def size(y):
            return (abs(spread(y)) / unit).max()

        step = spread(-backsub(lu, reduce(slope)))
        now_off = (abs(step) / unit).max()
        if now_off <= SOLVED:
            return ARRIVED, Approach(u + moved * step, part, moved)
        ahead = u + part * step
        if size(backsub(lu, reduce(rhs(t, ahead, params)))) <= (1.0 - 0.25 * part) * now_off:  # false for NaN
            return ON_THE_WAY, Approach(ahead, 1.0, 1.0)
        if part > SHORTEST:
            return ON_THE_WAY, Approach(u, 0.5 * part, moved)
        if now_off <= STAGNANT:
            return ARRIVED, now
        return LOST, now

    return approach


def consistent_slope_of(factor, backsub, reduce, spread, particular, product):
    """u' of M u' = f from (f, J, df/dt): M u' = f as far as it goes, and N' (J u' + df/dt) = 0.

    particular(f) -> p      with M p = f as far as f lies in the range of M
    product(J, x)           J x; the others are as in `approach_of`
    """

    def consistent_slope(slope, J, slope_t):
        p = particular(slope)
        return p - spread(backsub(factor(J), reduce(product(J, p) + slope_t)))

    return consistent_slope


def contracts(first, last, state):
    """Is the last correction a small part of the first one, or as small a part of the state as rounding may leave?"""
    allowed = CONTRACTION**2 * (first * first).sum() + ROUNDING**2 * (state * state).sum()
    return (last * last).sum() <= allowed


def integrate(step, prepare, rhs, params, propose, judge, project, record, carry, state, t1, attempts):
    """Step from the time of `state` to t1 in at most `attempts` attempts; time may run either way.

    step(rhs, params, t, u, known, dt, h) -> (u_new, mean_slope, errors, slopes, fsal): one attempt; `slopes` has one
                entry more than it has made evaluations, and where `fsal` is true, the last is the slope at u_new
    prepare(t, u, slope, params) -> known: what a step has to know of (t, u), found once for all attempts from there;
                the slope alone (`slope_alone`), or with it a Jacobian
    rhs(t, u, params) -> slope
    propose(memory, t, t1, u, slope) -> (dt, h, memory)       before the step (feed-forward control)
    judge(memory, dt, errors, u, u_new) -> (accept, memory)   after it (feedback): 1 accept, 0 reject, -1 give up
    project(u) -> u                                           last, on the new state (a ReLU, a positivity)
    record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new) -> carry    once per accepted step
    state       a `State`

    Returns (status, state, carry, rejected, evaluations). The status is one of the first four of
    `odelab.engines.Status`: 0 attempts spent, 1 reached t1, 2 the step fell below the spacing of t, 3 given up by the
    judge.
    """
    t, u, slope, fresh, memory = state
    status = 0
    rejected = 0
    evaluations = 0
    prepared = False
    for _ in range(attempts):
        if t == t1:
            break
        if not fresh:
            slope = rhs(t, u, params)
            evaluations += 1
            fresh = True
        if not prepared:
            known = prepare(t, u, slope, params)
            prepared = True
        dt, h, memory = propose(memory, t, t1, u, slope)
        t_new = where(dt == t1 - t, t1, t + dt)
        if t_new == t:
            status = 2
            break
        u_new, mean_slope, errors, slopes, fsal = step(rhs, params, t, u, known, dt, h)
        evaluations += len(slopes) - 1
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
        prepared = False
        if fresh:
            slope = slopes[-1]
        t = t_new
        u = projected
    if t == t1:
        status = 1
    return status, State(t, u, slope, fresh, memory), carry, rejected, evaluations


def slope_alone(t, u, slope, params):
    """The function `prepare` of explicit steps, which need only the slope at (t, u)."""
    return slope


def no_projection(u):
    return u


def no_record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
    return carry
