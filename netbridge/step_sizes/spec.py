"""Which controller with which options: what `controller=` takes, a checkpoint records and a block is built from.

A specification has one spelling as text, "asr(se, uses=2)": `str(spec)` writes it and `parse(text)` reads it.
"""

import ast
import dataclasses
import functools
import inspect
import json
import re
import zlib
from typing import Any

from netbridge.step_sizes.base import REGISTRY, Controller, Shared, registered_class

NESTED = ("module", "beside")  # options that are controllers themselves


@dataclasses.dataclass(frozen=True)
class Spec:
    """A controller by name with its options: a hashable value, made by `nb.controller` and `nb.asr`.

    `str(spec)` is its text, such as "asr(se, uses=2)", which `controller=` takes as well.

    name  the controller's name
    text  the options that differ from their defaults, as JSON

    >>> import netbridge as nb
    >>> wanted = nb.controller("stepnet", inputs="now")
    >>> str(wanted), wanted.options, wanted.title, wanted.file_name
    ("stepnet(inputs='now')", {'inputs': 'now'}, 'StepNet(inputs=now)', 'stepnet-inputs-now')
    """

    name: str
    text: str = "{}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return json.loads(self.text)

    @property
    def kind(self) -> type[Controller]:
        """The controller's class."""
        return REGISTRY[self.name]

    def as_json(self) -> str | dict:
        """The name, or {"name": ..., options}: what a checkpoint's header holds."""
        return {"name": self.name, **self.options} if self.options else self.name

    def __str__(self):
        if not self.options:
            return self.name
        nested = [spec_of(value).name for key, value in self.options.items() if self.kind.takes_pool and key in NESTED]
        if not all(map(str.isidentifier, (self.name, *nested))):
            return json.dumps(self.as_json())
        return f"{self.name}({', '.join(self.parts(str, repr))})"

    __repr__ = __str__

    @property
    def title(self) -> str:
        """For tables and figures: SE, ASR(SE), StepNet; a controller of one's own keeps its name."""
        ours = self.kind.__module__.startswith("netbridge.")
        usual = {"constant": "constant", "stepnet": "StepNet"}
        name = usual.get(self.name, self.name.upper() if ours else self.name)
        return f"{name}({', '.join(self.parts(lambda one: one.title, str))})" if self.options else name

    @property
    def file_name(self) -> str:
        """For file names: asr(se) becomes asr-se."""
        return re.sub(r"[^\w.-]+", "-", str(self)).strip("-")

    def parts(self, nested, plain) -> list[str]:
        """The options as written between the parentheses, a module's head first and without its name."""
        written = {
            key: nested(spec_of(value)) if self.kind.takes_pool and key in NESTED else plain(value)
            for key, value in self.options.items()
        }
        first = [written.pop("module")] if self.kind.takes_pool and "module" in written else []
        return first + [f"{key}={value}" for key, value in written.items()]


def parse(text: str) -> Spec:
    """The specification that is written as `str(spec)` writes it: "se", "asr(se, beside=eca)", "constant(0.5)".

    Values without a name are the options in their order. Words need no quotes: stepnet(inputs=now). JSON is read too.
    """
    if text in REGISTRY:
        return Spec(text)
    if text.lstrip().startswith(("{", '"')):
        return spec_of(json.loads(text))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        record = value_of(tree)
    except (SyntaxError, ValueError):
        record = None
    if not isinstance(record, dict):
        registered_class(text)  # raises with the list of names
    return spec_of(record)


def value_of(tree: ast.expr):
    """The value of an option in a parsed text; a call is the record of a controller."""
    if isinstance(tree, ast.Name):
        return tree.id
    if not isinstance(tree, ast.Call):
        return ast.literal_eval(tree)
    name = value_of(tree.func)
    options = option_names(registered_class(name))
    if len(tree.args) > len(options):
        raise TypeError(f"controller {name!r} has {len(options)} options, {options}; got {len(tree.args)} values.")
    given = dict(zip(options, map(value_of, tree.args), strict=False))
    return {"name": name, **given, **{one.arg: value_of(one.value) for one in tree.keywords}}


def controllers() -> list[str]:
    """The names that `controller=` knows: those of `netbridge.step_sizes`, then your own.

    >>> import netbridge as nb
    >>> nb.controllers()[:4]
    ['constant', 'se', 'cbam', 'eca']
    """
    return list(REGISTRY)


def option_names(kind) -> list[str]:
    """The options of a controller's class, in order."""
    parameters = list(inspect.signature(kind.__init__).parameters)[2:]  # without self and channels
    return [name for name in parameters if name != "build"]


def controller(name: str, **options) -> Spec:
    """A controller with options, for `controller=` and `on=`.

    name     one of `nb.controllers()`
    options  its options, by name: numbers, strings, or for ASR's `module` and `beside` other controllers

    Returns an `nb.Spec`. Raises ValueError for an unknown name or value, TypeError for an unknown option.

    >>> import netbridge as nb
    >>> nb.controller("se", reduction=4)
    se(reduction=4)
    >>> nb.resnet(14, controller=nb.controller("constant", value=0.5)).blocks[0].controller
    Constant(0.5)
    """
    kind, known = registered_class(name), option_names(registered_class(name))
    unknown = set(options) - set(known)
    if unknown:
        raise TypeError(f"controller {name!r} has no option `{min(unknown)}`; its options are {known or 'none'}.")
    plain = {key: value.as_json() if isinstance(value, Spec) else value for key, value in options.items()}
    for key in NESTED:
        if kind.takes_pool and plain.get(key) is not None:
            plain[key] = spec_of(plain[key]).as_json()
    try:
        json.dumps(plain)
    except TypeError as error:
        raise TypeError(f"options of controller {name!r} must be plain numbers or strings: {error}.") from None
    kind.check(**plain)
    defaults = {key: parameter.default for key, parameter in inspect.signature(kind.__init__).parameters.items()}
    changed = {key: value for key, value in plain.items() if value != defaults[key]}
    return Spec(name, json.dumps(changed, sort_keys=True) if changed else "{}")


def asr(module, uses: int = 1, init: float = 0.1, learnable: bool = True, beside=None, **more) -> Spec:
    """Attention-alike structural re-parameterization: a step size per channel that `nb.merge` folds into the weights.

    The head of a channel module is fed a learnable vector psi instead of the input, so h is constant once trained.

    module     the channel module whose head is used, such as "se"; None: h is psi itself
    uses       how many heads, each with its own psi, multiply
    init       the value that psi starts at
    learnable  False: psi stays as it starts
    beside     a live module that acts on what ASR leaves; it remains after `nb.merge`
    more       `spread` (standard deviation of psi's first values, 0), `activation` ("sigmoid" or "tanh"), `inner` (the
               value at which the head's own parameters start; None: as usual). The paper's transformers use
               activation="tanh", init=1e-3, inner=1e-3.

    Returns an `nb.Spec`.

    >>> import netbridge as nb
    >>> nb.asr("se", beside="eca")
    asr(se, beside=eca)
    >>> nb.merge(nb.resnet(14, controller=nb.asr("se"))).blocks[0].controller
    Constant(1)
    """
    nested = {key: value for key, value in (("module", module), ("beside", beside)) if value is not None}
    return controller("asr", uses=uses, init=init, learnable=learnable, **nested, **more)


def spec_of(value) -> Spec:
    """From a Spec, a Controller class, a JSON record, or a text as `parse` reads it."""
    if isinstance(value, Spec):
        return value
    if isinstance(value, dict):
        options = dict(value)
        return controller(options.pop("name", None), **options)
    if isinstance(value, type) and issubclass(value, Controller):
        if REGISTRY.get(value.name) is not value:
            raise ValueError(f'{value.__name__} needs a name: `class {value.__name__}(nb.Controller, name="...")`.')
        return Spec(value.name)
    return parse(value) if isinstance(value, str) else Spec(registered_class(value).name)


def build(spec, channels: int, pool: dict, prefix: str = "", use: int = 0) -> Controller:
    """The controller of one block; `pool` holds what the blocks of its stage share."""
    spec = spec_of(spec)
    options = spec.options
    if spec.kind.takes_pool:
        options["build"] = functools.partial(build_inner, channels, pool, prefix)
    if not spec.kind.shared:
        return make_controller(spec, channels, options)
    key = prefix + spec.name + (f"_{use}" if use else "")
    if options:
        key += f"_{zlib.crc32(spec.text.encode()):08x}"
    if key not in pool:
        pool[key] = make_controller(spec, channels, options)
    return Shared(pool[key])


def make_controller(spec, channels: int, options: dict) -> Controller:
    """A controller from its class; torch's complaint about a class that does not prepare its base is put plainly."""
    try:
        return spec.kind(channels, **options)
    except AttributeError as error:
        if "Module.__init__()" not in str(error):
            raise
        raise TypeError(f"controller {spec.name!r} must call `super().__init__()` first in its `__init__`.") from error


def build_inner(channels, pool, prefix, spec, use=None):
    """A controller inside another: heads on a vector (`use` given) do not share with the live ones."""
    return build(spec, channels, pool, prefix if use is None else f"asr_{prefix}", use or 0)
