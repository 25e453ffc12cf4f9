"""What decides a step: `propose` before it, `judge` after it, each carrying its memory.

Closed like `odelab.core`: these functions run in NumPy and in compiled code; what they need arrives as an argument or
is bound by the function that makes them. Memory is a pair (settings, history) of plain tuples; history changes on
acceptance only, so a rejected step leaves no trace but a smaller step.
"""


def propose_counted(memory, t, t1, u, slope):
    """Fixed steps by counting: t0 + n h, never t += h, whose rounding would drift."""
    t0, h, n = memory
    target = t0 + (n + 1.0) * h
    dt = target - t
    # A millionth of a step left over is rounding of (t1 - t0)/h, not a step of its own.
    if (t1 - target) / h <= 1e-6:
        dt = t1 - t
    return dt, dt, memory


def accept_finite(memory, dt, errors, u, u_new):
    """Accept every step whose state is finite."""
    if (u_new - u_new).sum() != 0.0:  # NaN and infinity leave NaN
        return -1, memory
    t0, h, n = memory
    return 1, (t0, h, n + 1.0)


def propose_next(memory, t, t1, u, slope):
    """The step the last judgement asked for, stretched by up to 1 % to land on t1 rather than leave a sliver."""
    settings, history = memory
    dt = history[0]
    remaining = t1 - t
    if abs(remaining) <= 1.01 * abs(dt):
        dt = remaining
        if abs(dt) > settings[9] * (1.0 + 1e-9):  # beyond the largest step by more than the rounding of t
            dt = 0.5 * dt
    return dt, dt, memory


def error_control(error_ratio, log2, exp2, limit, cautious):
    """The feedback half of every adaptive law, Söderlind (2003): a judge made of its helpers.

    A cautious judge does not let the step grow right after a rejection; the filters are not cautious.

    settings = (rtol, atol, k, log2 theta^k, b1, b2, b3, a2, a3, largest step)
    history = (next step, last accepted step, log2 e_{n-1}, log2 e_{n-2}, log2 h_{n-1}/h_{n-2}, was rejected, error)
    """

    def judge(memory, dt, errors, u, u_new):
        settings, history = memory
        rtol, atol, order, set_point, b1, b2, b3, a2, a3, largest = settings
        _, last, log_e1, log_e2, log_r1, rejected, _ = history
        ratio = error_ratio(errors, u, u_new, rtol, atol)
        if not ratio < 1e300:  # NaN or overflow: the step left the domain; try a much smaller one
            return 0, (settings, (0.1 * dt, last, log_e1, log_e2, log_r1, 1.0, ratio))
        # e against the set-point theta = 0.9; an error of 1e-12 of the tolerance is as good as none.
        log_e = log2(max(ratio, 1e-12)) - set_point
        if ratio > 1.0:  # history rolls back: the elementary controller, whose factor is below theta here
            factor = limit(exp2(-log_e / order))
            return 0, (settings, (dt * factor, last, log_e1, log_e2, log_r1, 1.0, ratio))
        log_r = 0.0
        if last != 0.0:
            log_r = log2(dt / last)
        exponent = -(b1 * log_e + b2 * log_e1 + b3 * log_e2) / order - a2 * log_r - a3 * log_r1
        factor = limit(exp2(min(max(exponent, -100.0), 100.0)))
        if cautious and rejected != 0.0:
            factor = min(factor, 1.0)
        proposed = dt * factor
        if abs(proposed) > largest:
            proposed = proposed * (largest / abs(proposed))
        return 1, (settings, (proposed, dt, log_e, log_e1, log_r, 0.0, ratio))

    return judge


def clip(factor):
    return min(max(factor, 0.2), 10.0)


def smooth_limiter(arctan):
    """1 + kappa arctan((x - 1)/kappa), kappa = 1: no kinks, so the filters keep their spectra; range (0.21, 2.57)."""

    def limit(factor):
        return 1.0 + arctan(factor - 1.0)

    return limit


def trial_step(state, slope, span):
    """A step that changes the state by a hundredth of itself, to look at how the slope bends."""
    trial = 1e-6
    if state > 1e-5 and slope > 1e-5:
        trial = 0.01 * state / slope
    return min(trial, span)


def first_step(trial, slope, bend, order, span):
    """The step whose local error would be about a hundredth of the tolerance, from the sizes of u' and u''."""
    if bend - bend != 0.0:  # infinite or undefined
        return 1e-3 * trial
    largest = max(slope, bend)
    better = max(1e-6, 1e-3 * trial)
    if largest > 1e-15:
        better = (0.01 / largest) ** (1.0 / order)
    return min(100.0 * trial, better, span)
