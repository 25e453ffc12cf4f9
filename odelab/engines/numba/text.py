"""Pieces of source text, of which the kernels of large systems are put together."""


def number(value) -> str:
    """A literal that reads back to the same double."""
    return repr(float(value))


def product(weight, name) -> str:
    return name if weight == 1 else f"{number(weight)} * {name}"


def combination(weights, names) -> str:
    """A weighted sum as text, `0.3 * k1 - 0.9 * k2`.

    Terms of weight zero are left out, a weight of one is not written; without any term the text is empty.
    """
    text = ""
    for weight, name in zip(weights, names, strict=False):
        if weight == 0:
            continue
        sign = "-" if weight < 0 else "+"
        term = product(abs(weight), name)
        text = (f"-{term}" if sign == "-" else term) if not text else f"{text} {sign} {term}"
    return text


def arguments(names) -> str:
    """The names with a comma behind each, `a, b,`: in parentheses they are a tuple, also where there is only one."""
    return "".join(f"{name}, " for name in names).rstrip()


def remark(text: str) -> list[str]:
    """A comment line."""
    return [f"# {text}"]


def indent(lines, levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def read_lines(names, array: str) -> list[str]:
    return [f"{name} = {array}[{i}]" for i, name in enumerate(names)]


def write_lines(names, array: str) -> list[str]:
    return [f"{array}[{i}] = {name}" for i, name in enumerate(names)]
