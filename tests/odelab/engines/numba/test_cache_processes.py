"""Kernels on disk, between processes: each loads what another compiled, and is right whatever befell the folder."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clock import HANGS
from tests.odelab.engines.numba.test_cache import SMALL

RHS = """
import math
import odelab as ol

RATE = 1.0

def bent(x):
    return x

def rhs(t, u, params):
    (x,) = u
    return (-RATE * bent(x),)
"""

# Prints the end state, the processor seconds of the first run and the engine; the model lies in the working folder.
SCRIPT = """
import json, time
import odelab as ol
from model import rhs
import numba  # the compiler's own import is not what is measured
began = time.process_time()
run = ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.rkc2(9.0), ol.fixed(1e-3), engine="compiled")
print(json.dumps([float(run.u[-1, 0]), time.process_time() - began, run.engine]))
"""
# Prints what a kernel of one line answers, which is compiled in a moment: 7.
SHORT = f"""
import json
{SMALL}
print(json.dumps([small(1.0)(3.0)]))
"""
RIGHT = {"rel": 1e-5}


def decayed(rate):
    """The solution, which a thousand steps of order two come near enough to."""
    return math.exp(-rate)


DECAYED = decayed(1.0)


def start(tmp_path, script=SCRIPT, model=RHS, cache=None):
    """A process of its own that runs `script` beside a module `model`."""
    (tmp_path / "model.py").write_text(model)
    names = {**os.environ, "ODELAB_CACHE": str(cache or tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    names["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[4])])
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=names,
    )


def answer(process):
    """What it printed; it has to have ended well, without a word of complaint."""
    out, complaint = process.communicate(timeout=HANGS)
    assert (process.returncode, complaint) == (0, "")
    return json.loads(out)


def short_answer(*args, **options):
    return answer(start(*args, script=SHORT, **options))[0]


def files(tmp_path):
    """Content of all files in the cache."""
    return {path: path.read_bytes() for path in sorted((tmp_path / "cache").rglob("*")) if path.is_file()}


def kernels(tmp_path):
    """The names of the kernels, without that of the types of their arguments."""
    return [path.name.rpartition("_")[0] for path in machine_code(tmp_path)]


def machine_code(tmp_path):
    return sorted((tmp_path / "cache" / "kernels").glob("*"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder whose cache holds the kernel, what the run that compiled it answered, and how long that took."""
    folder = tmp_path_factory.mktemp("compiled")
    end, seconds, engine = answer(start(folder))
    assert engine == "compiled"
    assert end == pytest.approx(DECAYED, **RIGHT)
    assert machine_code(folder)
    return folder, end, seconds


@pytest.mark.slow
def test_the_next_process_loads_what_one_compiled(compiled):
    folder, first, compiling = compiled
    before = files(folder)
    second, loading, _ = answer(start(folder))
    assert second == first
    assert files(folder) == before
    assert loading < 0.7 * compiling


def test_a_damaged_file_is_compiled_anew(tmp_path):
    assert short_answer(tmp_path) == 7.0
    before = files(tmp_path)
    place = machine_code(tmp_path)[0]
    place.write_bytes(before[place][: len(before[place]) // 2])
    assert short_answer(tmp_path) == 7.0
    assert len(place.read_bytes()) > 0.9 * len(before[place])
    assert len(kernels(tmp_path)) == 1


ARRAYS = """
import json, sys
import numpy as np
import odelab as ol
names = {"np": np, "__name__": sys.argv[1] if len(sys.argv) > 1 else "a_module_of_nobodys"}
exec("def rhs(t, u, params):\\n    x = u[0]\\n    return np.array([-x])", names)
run = ol.solve(ol.Problem(names["rhs"], [1.0], (0.0, 1.0)), ol.RKC2, ol.fixed(1e-3), engine="compiled")
print(json.dumps([run.end_u[0], run.engine]))
"""


@pytest.mark.slow
def test_machine_code_needs_no_module_and_is_compiled_anew_where_it_is_damaged(tmp_path):
    """Loading it imported the module that the function named, which may be gone, or another one of that name."""
    for damaged in (False, False, True):
        for place in machine_code(tmp_path) if damaged else ():
            place.write_bytes(place.read_bytes()[:1000])
        before = files(tmp_path)
        end, engine = answer(start(tmp_path, ARRAYS))
        assert (end, engine) == (pytest.approx(DECAYED, **RIGHT), "compiled")
        assert machine_code(tmp_path)
        assert not before or damaged == (files(tmp_path) != before)


NAMESAKES = """
import json
import numpy as np
import odelab as ol

def returned(body):
    names = {"np": np, "ARRAY": np.array([[0.1, -0.5], [0.9, 0.3]]), "__name__": "theirs"}
    exec(f"def rhs(t, u, params{', out' * ('out' in body)}):\\n    x, y = u[0], u[1]\\n    {body}", names)
    return names["rhs"]

PI, SMOOTH = ol.adaptive(1e-4, law="pi"), ol.adaptive(1e-4, law="h211b")
CASES = [  # of the method whose kernels numba compiles
    ("return np.roll(u, 1) - x * u", ol.fixed(0.125)),
    ("return ARRAY @ u + x * np.ones_like(u)", ol.fixed(0.125)),
    ("out[0], out[1] = y, -x", PI),
    ("out[0], out[1] = y * y, -x", SMOOTH),
    ("return y, -x * x", PI),
    ("return y - x, -x", SMOOTH),
]

def far(case):
    body, controller = case
    problem = ol.Problem(returned(body), [0.4, -0.3], (0.0, 1.0))
    ours, plain = (ol.solve(problem, ol.RKC2, controller, engine=engine) for engine in ("compiled", "python"))
    assert ours.engine == "compiled"
    return float(np.abs(ours.end_u - plain.end_u).max())

print(json.dumps([far(case) for case in CASES[FIRST:LAST]]))
"""


@pytest.mark.slow
def test_machine_code_of_several_processes_is_not_mistaken_for_one_another(tmp_path):
    """Each process compiles one case, so that functions of the same name were compiled equally early."""

    def distances(first, last):
        return answer(start(tmp_path, NAMESAKES.replace("FIRST", str(first)).replace("LAST", str(last))))

    alone = [distances(case, case + 1)[0] for case in range(6)]
    assert len(kernels(tmp_path)) == 6
    assert max(alone + distances(0, 6)) < 1e-12


FORKED = """
import json, os
from odelab.engines.numba import cache
from numba.core.bytecode import FunctionIdentity
assert cache.names_are_apart()
read, write = os.pipe()
child = os.fork()
number = FunctionIdentity.from_function(cache.folder).unique_id
if child == 0:
    os.write(write, str(number).encode())
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([number, int(os.read(read, 100))]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_names_its_machine_code_otherwise(tmp_path):
    ours, childs = answer(start(tmp_path, FORKED))
    assert abs(ours - childs) > 1e6


def test_a_folder_that_cannot_be_written_still_answers(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert short_answer(tmp_path, cache=tmp_path / "file" / "below") == 7.0
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_read_only_folder_still_answers(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o555)
    try:
        if os.access(cache, os.W_OK):
            pytest.skip("this user writes where nobody may")
        assert short_answer(tmp_path) == 7.0
        assert files(tmp_path) == {}
    finally:
        cache.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk_does_no_harm(tmp_path):
    """Files may not grow beyond 4000 bytes."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
    assert answer(start(tmp_path, limit + SHORT)) == [7.0]
    assert short_answer(tmp_path) == 7.0  # what was left behind is not trusted
    assert all(len(place.read_bytes()) > 4000 for place in machine_code(tmp_path))


@pytest.mark.slow
def test_two_processes_at_once(tmp_path):
    both = [start(tmp_path, SHORT), start(tmp_path, SHORT)]
    assert [answer(process) for process in both] == [[7.0], [7.0]]
    before = files(tmp_path)
    assert len(kernels(tmp_path)) == 1
    assert not [path for path in before if path.name.startswith("tmp")]
    assert short_answer(tmp_path) == 7.0
    assert files(tmp_path) == before


NAME = """
import json
import odelab as ol
from model import rhs
from odelab.engines.numba.fingerprint import fingerprint
from odelab.engines.numba.load import name_of_kernel
from odelab.engines.numba.request import request_of_run
run = ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.rkc2(9.0), ol.fixed(1e-3)
print(json.dumps(name_of_kernel(request_of_run(*run), fingerprint(rhs))))
"""


@pytest.mark.slow
def test_the_name_covers_captured_values_and_helpers(compiled, tmp_path):
    """Between processes: a kernel per content."""

    def name(*changes):
        return answer(start(tmp_path, NAME, RHS.replace(*changes)))

    shutil.copytree(compiled[0] / "cache", tmp_path / "cache")
    faster, other = ("RATE = 1.0", "RATE = 2.0"), ("return x\n", "return 3.0 * x\n")
    assert kernels(tmp_path) == [name("(x,) = u", "(x,) = u  # the same in other words")]
    assert len({*kernels(tmp_path), name(*faster), name(*other)}) == 3
    assert answer(start(tmp_path, model=RHS.replace(*other)))[0] == pytest.approx(decayed(3.0), **RIGHT)
    assert len(kernels(tmp_path)) == 2


CHANGING = """
import json
import model, odelab as ol
problem = ol.Problem(model.rhs, [1.0], (0.0, 1.0))
def solved():
    return float(ol.solve(problem, ol.HEUN, ol.fixed(1e-3), engine="compiled").u[-1, 0])
found = [solved()]
model.RATE = 2.0
found.append(solved())
model.RATE, model.bent = 1.0, model.steeper
found.append(solved())
print(json.dumps(found))
"""


def test_what_changes_within_a_process_changes_the_kernel(tmp_path):
    model = RHS + "\ndef steeper(x):\n    return 3.0 * x\n"
    found = answer(start(tmp_path, CHANGING, model))
    assert found == pytest.approx([DECAYED, decayed(2.0), decayed(3.0)], **RIGHT)


WITHOUT_FILE = """
import json
import numpy as np
import odelab as ol
names = {"RATES": (np.array([1.0]), "of decay")}
exec("def typed(t, u, params):\\n    return (-RATES[0][0] * u[0],)", names)
found = []
for rhs in (lambda t, u, params: (-u[0],), names["typed"]):
    run = ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.rkc2(9.0), ol.fixed(1e-3), engine="compiled")
    found.append([float(run.u[-1, 0]), run.engine])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_functions_without_a_file_are_kept_on_disk_too(tmp_path):
    """Lambdas, functions of a notebook or a prompt: the next process loads what the first compiled."""
    first = answer(start(tmp_path, WITHOUT_FILE))
    for value, engine in first:
        assert value == pytest.approx(DECAYED, **RIGHT)
        assert engine == "compiled"
    before = files(tmp_path)
    assert len(kernels(tmp_path)) == len(machine_code(tmp_path)) == 2
    assert answer(start(tmp_path, WITHOUT_FILE)) == first
    assert files(tmp_path) == before
