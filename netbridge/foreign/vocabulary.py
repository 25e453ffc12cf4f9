"""What torch's functions are called and what their names mean: activations, casts, changes of layout, sums.

Names are lower-case and without underscores around them, so that `torch.add`, `x.add_` and `+=` have one (`describe`).
"""

import functools

ACTIVATIONS = set(
    "relu relu6 leaky_relu leakyrelu gelu silu mish elu celu selu hardswish hardsigmoid sigmoid tanh prelu softplus "  # noqa: SIM905
    "hardtanh threshold clamp clip softmax logsigmoid softsign rrelu".split()
)
CURVED = ACTIVATIONS | set(
    "abs absolute sign square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh erf "  # noqa: SIM905
    "pow reciprocal round floor ceil trunc frac fix maximum minimum floordiv floor_divide glu "
    "scaled_dot_product_attention multi_head_attention_forward lstm gru rnn_tanh rnn_relu "
    "odeint odeint_adaptive odeint_untold".split()
)  # nonlinear functions: what goes through one is no shortcut
PRODUCTS = set("mul div matmul bmm mm mv einsum baddbmm addmm bilinear addcmul addcdiv lerp".split())  # noqa: SIM905
ADDING = set("add sub addcmul addcdiv lerp index_add scatter_add scatter_reduce index_put index_copy setitem".split())  # noqa: SIM905
ADDING_PRODUCTS = {"addmm", "baddbmm", "addbmm"}  # of which a factor need not be as large as the sum
TRANSPARENT = set(
    "identity dropout dropout1d dropout2d dropout3d alpha_dropout alphadropout feature_dropout featurealphadropout "  # noqa: SIM905
    "droppath drop_path stochasticdepth stochastic_depth contiguous clone copy detach alias data positive "
    "to type type_as float double half bfloat16 cpu cuda".split()
)  # of a network in evaluation mode; casts are so from one floating type to another only, see `Flow.passes_on`
LAYOUTS = set(
    "permute transpose t mt reshape reshape_as view view_as ravel flatten unflatten swapaxes swapdims movedim moveaxis "  # noqa: SIM905
    "squeeze unsqueeze roll getitem".split()
)  # the same numbers in another order: the norm of a sample does not change
JOINS = {"cat", "concat", "concatenate", "stack", "setitem", "index_put", "index_copy", "where", "fold"}
EXPANDING = set("expand expand_as broadcast_to repeat tile repeat_interleave".split())  # noqa: SIM905  # the same numbers
RESIZING = {"interpolate", "upsample", "upsample_nearest", "upsample_bilinear"}  # one number a map is repeated, too
POINTWISE = (ACTIVATIONS - {"softmax"}) | set(
    "add sub mul div neg abs absolute sign square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "  # noqa: SIM905
    "atan sinh cosh erf pow reciprocal round floor ceil trunc frac fix maximum minimum where gt ge lt le eq ne rpow "
    "addcmul addcdiv lerp clamp_min clamp_max heaviside nan_to_num float bool to type type_as double half".split()
)  # every element of the result depends on one element of each argument
RANDOM = ("rand", "bernoulli", "dropout", "normal", "multinomial", "droppath", "drop_path", "stochastic")
SHAPED = set(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full "  # noqa: SIM905
    "new_tensor".split()
)  # take the shape of a tensor and none of its numbers
TENSORLESS = set(
    "shape size dim ndim dim_order dtype device layout numel nelement stride is_contiguous is_floating_point "  # noqa: SIM905
    "is_complex is_cuda is_mps is_sparse is_quantized is_nested requires_grad grad_fn".split()
) | {"__len__", "__hash__"}  # return no tensor; under their own names
ZEROS = {"zeros", "zeros_like", "new_zeros"}
LIKE = {"to", "type_as", "view_as", "reshape_as", "expand_as"}  # of a second tensor only its kind or shape is taken
SLICES = set("getitem index chunk split split_with_sizes tensor_split narrow select unbind index_select".split())  # noqa: SIM905
SPELLINGS = {
    "add": "iadd radd",
    "sub": "isub rsub subtract",
    "mul": "imul rmul multiply",
    "div": "truediv itruediv rtruediv rdiv true_divide divide",
    "neg": "negative",
    "sigmoid": "expit",
}
CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings.split()}
SIGNATURES = {
    "add": ("input", "other", "alpha"),
    "sub": ("input", "other", "alpha"),
    "mul": ("input", "other"),
    "div": ("input", "other", "rounding_mode"),
    "neg": ("input",),
    "lerp": ("input", "end", "weight"),
    "addcmul": ("input", "tensor1", "tensor2", "value"),
    "addcdiv": ("input", "tensor1", "tensor2", "value"),
    "stack": ("tensors", "dim"),
    "sum": ("input", "dim"),
    "clamp": ("input", "min", "max"),
    "clip": ("input", "min", "max"),
    "clamp_min": ("input", "min"),
}  # the arguments of the operations that make a step, in torch's own order


def describe(name: str, args, kwargs) -> tuple[str, list]:
    """An operation under the one name of all its spellings, and its arguments in the order of its signature.

    Adding the number 0 or multiplying by the number 1 is an identity, as in Python's own `sum`.
    """
    plain, args = plain_name(name), list(args)
    name = CANONICAL.get(plain, plain)
    signature = SIGNATURES.get(name, ())
    args += [kwargs.get(key) for key in signature[len(args) :]]
    if plain in ("rsub", "rtruediv", "rdiv"):
        args[:2] = args[1::-1]
    if name == "getitem" and not is_plain_index(args[1]):
        return "index", args
    if name == "setitem" and is_whole_index(args[1]):
        return "copy", args
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1}.get(name)
    if name == "div" and args[2] is not None:
        return "floor_divide", args  # with a `rounding_mode`, which makes it another function
    if neutral is not None and is_number(args[1]) and args[1] == neutral:
        return "identity", args
    return name, args


@functools.cache
def plain_name(name: str) -> str:
    return name.strip("_").lower().removeprefix("special_")


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_index(index) -> bool:
    """Does an index take all of a tensor, as in `x[:] = y` and `x[...] = y`?"""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is ... or (isinstance(part, slice) and part == slice(None)) for part in parts)


def is_plain_index(index) -> bool:
    """Is an index made of slices, numbers, None and ... alone, so that no element is taken twice?"""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, int | slice) for part in parts)
