"""The data set a study asks for, or another in its place, said aloud."""

import dataclasses

from netbridge import data


def images_or_fallback(study: str, arguments, shows: str, usable=None):
    """(data set, a notice where it is not the one asked for, the arguments of that run).

    `arguments` has `dataset`, `data_root` and `fallback`; `usable` gives a reason why a data set that is there will not
    do, or "". Without a fallback, a data set that cannot be had ends the study with the remedies.
    """
    try:
        images = data.load(arguments.dataset, arguments.data_root)
        reason = usable(arguments) if usable and arguments.fallback else ""
        if not reason:
            return images, "", arguments
    except data.DataUnavailable as error:
        if arguments.fallback is None:
            raise SystemExit(f"{study}: {error}") from None
        reason = str(error).splitlines()[0].removesuffix(" One of these helps:")
    notice = (
        f"NOT {arguments.dataset}: {reason} This run {shows} {arguments.fallback} instead; its numbers are about "
        f"{arguments.fallback} and nothing else."
    )
    arguments = dataclasses.replace(arguments, dataset=arguments.fallback, fallback=None)
    return data.load(arguments.dataset, arguments.data_root), notice, arguments
