"""The layout of an ensemble: 16 or 32 trajectories in flight, each with its own time, step and parameters.

A sweep makes one attempt in every lane. It is a loop over lanes, which LLVM turns into vector instructions; the loop
has no branches, so accepting an attempt means choosing between the old and the new value. When the run in a lane is
finished, its result is written out and the lane takes the next run of its thread's share. A thread's share is a few
neighbouring runs of the queue of all threads. If a thread took runs one by one, two threads would wait for the same
cache lines so often that together they reach 1.6 times the speed of one thread instead of 1.9. Each lane executes the
same instructions, so a run's result does not depend, in any bit, on its lane or on which other runs are in flight.

A system of few components has too few independent operations in one attempt to keep the processor busy. The text then
interleaves two groups of lanes, operation by operation: `_a` marks the lanes of the lower half, `_b` those of the
upper. On van der Pol an attempt takes 3.8 ns that way, and 5.3 ns with one group of 32 lanes. LLVM's option
-force-vector-interleave=2 brings one group to 3.9 to 4.2 ns, but the option holds for all compiled code of the process,
the user's own included.
"""

from odelab.control.feedback import History
from odelab.engines import first_step_text
from odelab.engines.lanes import points_text
from odelab.engines.numba import stages
from odelab.engines.numba.kernel_control import control_text, judgement_line, memory_text
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, components, indent, read_lines, remark, tolerance_names
from odelab.engines.rosenbrock import attempt
from odelab.engines.rosenbrock.one_run import FAILURES
from odelab.stiffness.h_rho import twin_stages

NOBODY, RETIRED = -1, -2  # instead of a run's index: the lane waits for a run; the queue was empty when it asked
MANY_COMPONENTS = 5  # from here on the operations of one group of lanes keep the processor busy

ARGUMENTS = (
    *("queue", "sweeps", "share", "settings", "tolerance", "max_attempts", "starts", "params_in", "numbers"),
    *("ends", "times", "counts", "statuses"),
)
POINTS = ("at", "points")
MAXIMA = ("maxima",)


DONE = """
@njit(**OPTIONS)
def done(index, t, t1, attempts, max_attempts, dt):
    return index < 0 or t == t1 or attempts >= max_attempts or dt != dt
""".strip()


def lane_groups(request: Request) -> tuple[int, tuple[str, ...]]:
    """(number of lanes, tags of the interleaved groups of lanes).

    A linearly implicit method has one group at any size, because its elimination keeps the processor busy by itself.
    """
    two = request.n < MANY_COMPONENTS and not request.implicit
    return (32, ("_a", "_b")) if two else (16, ("_a",))


def real_rows(request: Request) -> list[str]:
    """The rows of real numbers a lane keeps between attempts."""
    n = request.n
    rows = ["t", "dt", "error", *components("u", n, ""), *history_rows(request)]
    if request.method.fsal:
        rows += [f"slope{i}" for i in range(n)]
    rows += [f"parameter{i}" for i in range(request.parameters)]
    if request.implicit:
        rows += ["unsolved"]
    if request.maxima:
        rows += ["largest_sai", "largest_rho"]
    if request.points:
        rows += ["due"]
    return rows


def integer_rows(request: Request) -> list[str]:
    """The rows of whole numbers, behind those of real ones."""
    return ["index", "attempts", "accepted", *(["point"] if request.points else [])]


def lanes(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of the function `lanes`, which makes as many sweeps as it is asked for.

    The function returns True when the queue and all lanes are empty.
    """
    width, tags = lane_groups(request)
    plan = attempt.plan_for(request) if request.implicit else None
    rows = len(real_rows(request)) + len(integer_rows(request))
    names = [*ARGUMENTS, *(MAXIMA if request.maxima else ()), *(POINTS if request.points else ())]
    body = [
        *settings_lines(request),
        *block_lines(request, width),
        "following, after, portion = share[0], share[1], share[2]",
        "idle = 0",
        f"for l in range({width}):",
        f"    for row in range({rows}):",
        "        block[row, l] = numbers[row, l]",
        f"    if index[l] == {RETIRED}:",
        "        idle += 1",
        f"flagged = {width}",
        "for sweep in range(sweeps + 1):",
        "    if flagged > idle:",
        f"        for l in range({width}):",
        *indent(points_text.fill_points_lines(request) if request.points else [], 3),
        f"            if index[l] == {RETIRED} or not done(index[l], t[l], t1, attempts[l], max_attempts, dt[l]):",
        "                continue",
        *indent(hand_in_lines(request), 3),
        *indent(take_next_lines(request), 3),
        f"    if idle == {width} or sweep == sweeps:",
        "        break",
        "    flagged = 0",
        f"    for l in range({width // len(tags)}):",
        *indent(group_lines(request, plan, tags, width), 2),
        f"for l in range({width}):",
        f"    for row in range({rows}):",
        "        numbers[row, l] = block[row, l]",
        "share[0], share[1] = following, after",
        f"return idle == {width}",
    ]
    definitions = [
        DONE,
        *([attempt.derivative_text(plan)] if plan else []),
        control_text(request, judge_of(request), "OF_LAWS"),
        *first_step_text.begin_texts(request),
        *([points_text.inside_text(request)] if request.points else []),
    ]
    return definitions, [f"def lanes({', '.join(names)}):", *indent(body)]


def block_lines(request: Request, width: int) -> list[str]:
    """Lines that make every row a sweep reads or writes, whole numbers too, a part of one local array.

    LLVM must know that no two rows overlap before it makes vector code of a sweep. Rows of one array lie at known
    distances. If each row were an array of its own, LLVM would compare their addresses at run time, and it gives up
    when more than 128 comparisons are needed (DOPRI5 with 8 components: 72 ns an attempt instead of 13). It must also
    know that nothing else overlaps them, so the argument `numbers` is copied into the local array and back.
    """
    rows, places = real_rows(request), integer_rows(request)
    real, count = len(rows), len(rows) + len(places)
    between = points_text.step_row_count(request) if request.points else 0
    return [
        f"block = np.empty(({count + between}, {width}))",
        f"whole = block[{real}:{count}].view(np.int64)",
        *(f"{row} = block[{i}]" for i, row in enumerate(rows)),
        *(f"{place} = whole[{i}]" for i, place in enumerate(places)),
        *(points_text.row_lines(request, count) if request.points else []),
    ]


def settings_lines(request: Request) -> list[str]:
    return [*read_lines(first_step_text.SETTINGS, "settings"), *read_lines(tolerance_names(request), "tolerance")]


def hand_in_lines(request: Request) -> list[str]:
    """Lines that write the result of a finished run into the arrays of the ensemble."""
    outcome = [
        "counts[j, 0] = accepted[l]",
        "counts[j, 1] = attempts[l] - accepted[l]",
        "status = REACHED",
        "if t[l] != t1:",
        "    status = ATTEMPTS_SPENT",
        "    if dt[l] != dt[l]:  # NaN: the last attempt was lost, or its state was not finite",
        "        status = STEP_LOST if error[l] < math.inf else NOT_FINITE",
        "        counts[j, 1] -= 1",
        *([f"    if unsolved[l] >= {FAILURES}.0:", "        status = SINGULAR"] if request.implicit else []),
        "statuses[j] = status",
        "times[j] = t[l]",
        *(f"ends[j, {i}] = u{i}[l]" for i in range(request.n)),
    ]
    if request.maxima:
        rho = "math.sqrt(largest_rho[l]) if largest_rho[l] >= 0.0 else math.nan"
        outcome += ["maxima[j, 0] = math.sqrt(largest_sai[l])", f"maxima[j, 1] = {rho}"]
    return ["j = index[l]", "if j >= 0:", *indent(outcome)]


def take_next_lines(request: Request) -> list[str]:
    """Lines that start the next run of the queue in a lane, or retire the lane where the queue is empty.

    A retired lane keeps sweeping, so it must not move, and it must ask the right-hand side for nothing that no run
    would ask for: it stays at t1, with a state and parameters of the ensemble.
    """
    n, k = request.n, request.parameters
    state = f"({arguments(f'starts[j, {i}]' for i in range(n))})"
    params = f"({arguments(f'params_in[j, {i}]' for i in range(k))})"
    slopes = arguments(f"slope{i}[l]" if request.method.fsal else "_" for i in range(n))
    if request.law:
        begun = [f"dt[l], _, {slopes} = {first_step_text.begin_call(request, state, params)}"]
    elif request.method.fsal:
        begun = ["dt[l] = given_step", f"{slopes} = rhs(t0, {state}, {params})"]
    else:
        begun = ["dt[l] = given_step"]
    start = [
        "index[l] = j",
        "t[l] = t0",
        *begun,
        *(f"u{i}[l] = starts[j, {i}]" for i in range(n)),
        *(f"parameter{i}[l] = params_in[j, {i}]" for i in range(k)),
        "error[l] = 0.0",
        *(f"{row}[l] = 0.0" for row in history_rows(request)),
        "attempts[l] = 0",
        "accepted[l] = 0",
    ]
    if request.implicit:
        start += ["unsolved[l] = 0.0"]
    if request.maxima:
        start += ["largest_sai[l] = 0.0", "largest_rho[l] = -1.0"]
    if request.points:
        start += points_text.first_points_lines(request)
    return [
        "if following == after:",
        "    following = fetch_add(queue, portion)",
        "    after = following + portion",
        "j = following",
        "following += 1",
        "if j < starts.shape[0]:",
        *indent(start),
        "else:",
        f"    index[l] = {RETIRED}",
        "    t[l] = t1",
        "    dt[l] = 0.0",
        *(f"    u{i}[l] = starts[0, {i}]" for i in range(n)),
        *([f"    slope{i}[l] = 0.0" for i in range(n)] if request.method.fsal else []),
        *(f"    parameter{i}[l] = params_in[0, {i}]" for i in range(k)),
        "    accepted[l] = 0",
        *(["    due[l] = direction * math.inf"] if request.points else []),
        "    idle += 1",
    ]


def group_lines(request: Request, plan, tags, width: int) -> list[str]:
    """One attempt per group of lanes, their lines alternating."""
    groups = []
    for half, tag in enumerate(tags):
        place = f"l + {half * width // len(tags)}" if half else "l"
        groups.append(attempt_lines(request, plan, tag, place))
    return [line for together in zip(*groups, strict=True) for line in together if line]


def attempt_lines(request: Request, plan, tag: str, place: str) -> list[str]:
    """One attempt in lane `place`, without branches; `plan` is that of a linearly implicit method.

    The history is read into local numbers first, because LLVM turns `a[l] if fine else b[l]` into a load from a chosen
    address, and then makes no vector code of the sweep.
    """
    n, method = request.n, request.method
    due = f" or (due[{place}] - t{tag}) * direction <= 0.0" if request.points else ""
    history = history_rows(request)
    lines = [
        f"t{tag} = t[{place}]",
        *(f"{name}{tag} = {name}[{place}]" for name in history),
        f"memory{tag} = {memory_of(request, tag, place)}",
        f"dt{tag}, _, _ = propose(memory{tag}, t{tag}, t1, 0.0, 0.0)",
        f"dt{tag} = dt{tag} if t{tag} != t1 else 0.0",
        f"t_new{tag} = t1 if dt{tag} == t1 - t{tag} else t{tag} + dt{tag}",
        *(f"u{i}{tag} = u{i}[{place}]" for i in range(n)),
        f"params{tag} = ({arguments(f'parameter{i}[{place}]' for i in range(request.parameters))})",
    ]
    if method.fsal:
        lines += [f"k1_{i}{tag} = slope{i}[{place}]" for i in range(n)]
    else:
        lines.append(stages.slope_line(n, 1, f"t{tag}", "u", tag))
    if plan is None:
        lines += stages.stage_lines(method, n, tag)
        errors = stages.error_ratio_lines(method, n, tag, request.vector_tolerance) if request.law else []
    else:
        lines += [*attempt.derivative_lines(plan, tag), *attempt.stage_lines(method, plan, tag)]
        errors = attempt.error_ratio_lines(plan, tag, request.vector_tolerance) if request.law else []
    judged = f"q{tag}" if request.law else stages.finite_check(n, tag)
    lines += [
        *errors,
        *remark("is it accepted, and which size has the next one?", tag),
        f"error[{place}] = {judged}",
        judgement_line(request, f"error[{place}]", tag),
        f"fine{tag} = accept{tag} == 1",
        f"dt_next{tag} = {f'memory{tag}.history.next_step' if request.law else 'given_step'}",
        *(f"{name}[{place}] = memory{tag}.history.{name}" for name in history),
    ]
    if plan is not None:
        lines += failure_lines(request, tag, place)
    if request.maxima:
        lines += maxima_lines(request, plan, tag, place)
    if request.points:
        lines += points_text.keep_step_lines(request, tag, place)
    lines += [
        *remark("accepted, or as it was", tag),
        f"moves{tag} = t_new{tag} != t{tag}",
        f"moved_on{tag} = fine{tag} and moves{tag}",
        f"t{tag} = t_new{tag} if moved_on{tag} else t{tag}",
        f"t[{place}] = t{tag}",
        *(f"u{i}[{place}] = v{i}{tag} if moved_on{tag} else u{i}{tag}" for i in range(n)),
    ]
    if method.fsal:
        last = method.stages
        lines += [f"slope{i}[{place}] = k{last}_{i}{tag} if moved_on{tag} else k1_{i}{tag}" for i in range(n)]
    lines += [
        f"attempts[{place}] += 1",
        f"accepted[{place}] += 1 if moved_on{tag} else 0",
        f"dt[{place}] = dt_next{tag} if {goes_on(request, tag, place)} else math.nan",
        f"flagged += 1 if done(0, t{tag}, t1, attempts[{place}], max_attempts, dt[{place}]){due} else 0",
    ]
    return lines


def goes_on(request: Request, tag: str, place: str) -> str:
    """The condition, as text, under which the lane may make another attempt (also after a rejected one)."""
    moves = f"moves{tag}" if request.law else f"moved_on{tag}"
    return f"{moves} and unsolved[{place}] < {FAILURES}.0" if request.implicit else moves


def failure_lines(request: Request, tag: str, place: str) -> list[str]:
    """Lines that count how often in a row the factors have not solved the first stage.

    An adaptive run may fail FAILURES times before it is given up; a run with fixed steps is given up the first time.
    """
    once = "1.0" if request.law else f"{FAILURES}.0"
    lines = [f"unsolved[{place}] = 0.0 if sound{tag} else unsolved[{place}] + {once}"]
    return lines if request.law else [*lines, f"fine{tag} = fine{tag} and sound{tag}"]


def history_rows(request: Request) -> list[str]:
    """The fields of `odelab.control.feedback.History` that the law uses; a lane keeps a row for each of them."""
    if request.law is None:
        return []
    (_, b2, b3), (a2, a3) = request.law.b, request.law.a
    needed = {"last_step": a2 or a3, "log_e1": b2 or b3, "log_e2": b3, "log_r1": a3, "rejected": not request.law.smooth}
    return [name for name, use in needed.items() if use]


def memory_of(request: Request, tag: str, place: str) -> str:
    """The controller's memory of a lane, as text; fields that the law does not use are zero."""
    if request.law is None:
        values = {"t0": "t0", "h": "given_step", "n": f"np.float64(accepted[{place}])"}
    else:
        kept = {name: f"{name}{tag}" for name in history_rows(request)}
        values = dict.fromkeys(History._fields, "0.0") | kept | {"next_step": f"dt[{place}]"}
    return memory_text(request, values, "rtol", "largest" if request.limited else "math.inf")


def judge_of(request: Request) -> str:
    """The judge, as text."""
    return f"judge_of_squares({request.law.smooth}, {request.n})" if request.law else "judge_of_state(itself)"


def maxima_lines(request: Request, plan, tag: str, place: str) -> list[str]:
    """Running maxima of SAI^2 and (h rho)^2 over accepted steps."""
    n, method = request.n, request.method
    lines = stages.sai_lines(method, n, tag) if plan is None else attempt.sai_lines(plan, tag)
    kept = ["sai", *(["rho"] if twin_stages(method) else [])]
    lines += stages.h_rho_lines(method, n, tag)
    for name in kept:
        row = f"largest_{name}[{place}]"
        lines.append(f"{row} = {name}{tag} if fine{tag} and {name}{tag} > {row} else {row}")
    return lines
