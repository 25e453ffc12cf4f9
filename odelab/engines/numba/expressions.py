"""Arithmetic spelled as source text: the small change of every generated kernel."""


def number(value) -> str:
    """A literal that reads back to the same double."""
    return repr(float(value))


def product(weight, name) -> str:
    return name if weight == 1 else f"{number(weight)} * {name}"


def combination(weights, names) -> str:
    """`0.3 * k1 - 0.9 * k2`: zeros vanish, ones do not multiply; empty without any term."""
    text = ""
    for weight, name in zip(weights, names, strict=False):
        if weight == 0:
            continue
        sign = "-" if weight < 0 else "+"
        term = product(abs(weight), name)
        text = (f"-{term}" if sign == "-" else term) if not text else f"{text} {sign} {term}"
    return text


def last_weight(weights) -> int:
    """The place of the last weight that is not zero."""
    return max(j for j, weight in enumerate(weights) if weight != 0)


def total(terms) -> str:
    """A sum in pairs, whose chain of additions is short."""
    terms = list(terms)
    if len(terms) == 1:
        return terms[0]
    while len(terms) > 1:
        pairs = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
    return terms[0][1:-1]


def arguments(names) -> str:
    """The inside of a tuple display, `a, b,`; also of one element."""
    return "".join(f"{name}, " for name in names).rstrip()


def remark(text: str, tag: str = "") -> list[str]:
    """A comment, once for all groups of lanes that stand side by side."""
    return [f"# {text}" if tag in ("", "_a") else ""]


def polynomial(coefficients, variable, target, scratch) -> list[str]:
    """Lines for target = sum_j coefficients[j] variable^j by Estrin's scheme: short chains instead of a long one."""
    lines, terms, power, made = [], [number(c) for c in coefficients], variable, 0
    while len(terms) > 1:
        paired = []
        for low, high in zip(terms[::2], terms[1::2], strict=False):
            name = target if len(terms) == 2 else f"{scratch}{made}"
            made += 1
            lines.append(f"{name} = {low} + {high} * {power}")
            paired.append(name)
        terms = paired + terms[2 * len(paired) :]
        if len(terms) > 1:
            lines.append(f"{power}q = {power} * {power}")
            power += "q"
    return lines


def indented(lines, levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]
