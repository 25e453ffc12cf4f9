"""Which controller with which options: what `controller=` takes, a checkpoint records and a block is built from."""

import dataclasses
import functools
import inspect
import json
import zlib
from typing import Any

from netbridge.step_sizes.base import REGISTRY, Controller, Shared, registered


@dataclasses.dataclass(frozen=True)
class Spec:
    """A controller by name with its options; made by `nb.controller` and `nb.asr`, and hashable."""

    name: str
    text: str = "{}"  # the options as JSON

    @property
    def options(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def kind(self) -> type[Controller]:
        return REGISTRY[self.name]

    def as_json(self) -> str | dict:
        return {"name": self.name, **self.options} if self.options else self.name

    def __repr__(self):
        inside = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.name}({inside})" if inside else self.name


def controllers() -> list[str]:
    """The names `controller=` knows: the modules of this package, then your own."""
    return list(REGISTRY)


def controller(name: str, **options) -> Spec:
    """A controller with options: nb.controller("stepnet", inputs="now"), nb.controller("constant", value=0.5)."""
    kind = registered(name)
    parameters = list(inspect.signature(kind.__init__).parameters.values())[2:]  # without self and channels
    known = [parameter.name for parameter in parameters if parameter.name != "build"]
    unknown = set(options) - set(known)
    if unknown:
        raise TypeError(f"controller {name!r} has no option `{min(unknown)}`; its options are {known or 'none'}.")
    plain = {key: value.as_json() if isinstance(value, Spec) else value for key, value in options.items()}
    try:
        json.dumps(plain)
    except TypeError as error:
        raise TypeError(f"options of controller {name!r} must be plain numbers or strings: {error}.") from None
    kind.check(**plain)
    defaults = {parameter.name: parameter.default for parameter in parameters}
    changed = {key: value for key, value in plain.items() if value != defaults[key]}
    return Spec(name, json.dumps(changed, sort_keys=True) if changed else "{}")


def asr(module, uses: int = 1, init: float = 0.1, learnable: bool = True, beside=None, **more) -> Spec:
    """A channel module's head on a learnable vector psi: a constant step size, which `merge` folds away.

    `module` None is the bare vector. psi starts at `init` (plus `spread` times normal samples). `beside` names a live
    module to keep next to it. For transformers: activation="tanh", init=1e-3, inner=1e-3.
    """
    nested = {
        key: spec_of(value).as_json() for key, value in (("module", module), ("beside", beside)) if value is not None
    }
    return controller("asr", uses=uses, init=init, learnable=learnable, **nested, **more)


def spec_of(value) -> Spec:
    """From a name, a Spec, a Controller class or a JSON record."""
    if isinstance(value, Spec):
        return value
    if isinstance(value, dict):
        options = dict(value)
        return controller(options.pop("name", None), **options)
    if isinstance(value, type) and issubclass(value, Controller):
        if REGISTRY.get(value.name) is not value:
            raise ValueError(f'{value.__name__} needs a name: `class {value.__name__}(nb.Controller, name="...")`.')
        return Spec(value.name)
    return controller(value)


def build(spec, channels: int, pool: dict, prefix: str = "", use: int = 0) -> Controller:
    """The controller of one block; `pool` holds what the blocks of its stage share."""
    spec = spec_of(spec)
    options = spec.options
    if spec.kind.takes_pool:
        options["build"] = functools.partial(build_inner, channels, pool, prefix)
    if not spec.kind.shared:
        return spec.kind(channels, **options)
    key = prefix + spec.name + (f"_{use}" if use else "")
    if options:
        key += f"_{zlib.crc32(spec.text.encode()):08x}"
    if key not in pool:
        pool[key] = spec.kind(channels, **options)
    return Shared(pool[key])


def build_inner(channels, pool, prefix, spec, use=None):
    """A controller inside another: heads on a vector (`use` given) do not share with the live ones."""
    return build(spec, channels, pool, prefix if use is None else f"asr_{prefix}", use or 0)
