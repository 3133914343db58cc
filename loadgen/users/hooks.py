"""What happens at which of Locust's events. Imported once, by `loadgen.users`."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust import events
from locust.exception import StopTest
from locust.runners import MasterRunner, WorkerRunner

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import gevent

from loadgen import exitcodes, stdio
from loadgen.config import ConfigError, Settings
from loadgen.users import channel, csvfile, early
from loadgen.users.interrupt import Interrupt
from loadgen.users.master import MasterSession
from loadgen.users.options import (
    SPAWN_RATE,
    STOP_TIMEOUT_S,
    add_options,
    config_path,
    effective_defaults,
)
from loadgen.users.session import MISTAKES, Session, exit_with
from loadgen.users.user import LlmUser
from loadgen.users.worker import WorkerSession
from loadgen.workload.scenarios import Scenario

PLAIN_ENV = "LOADGEN_PLAIN"  # set by `loadgen run`: our lines without Locust's, for people who don't know it
LOGIN_ENV = ("LOADGEN_WEB_USER", "LOADGEN_WEB_PASSWORD_HASH")  # both set: the page asks for them
WEB_HOST = "127.0.0.1"  # Locust's own default is every interface
QUIET_ENV = "LOADGEN_QUIET"  # set by `loadgen sweep`: warnings only, as each step's engines are known by then

_state: dict[str, Any] = {}


def _scenario() -> Scenario | None:
    """The workload whose defaults count: of the only user class there is, or of the one that is named."""
    classes = [c for c in _subclasses(LlmUser) if hasattr(c, "scenario")]
    named = [c for c in classes if c.__name__ in sys.argv[1:]]
    chosen = named if len(named) == 1 else classes
    return chosen[-1].scenario if chosen else None


def _subclasses(of: type[LlmUser]) -> list[type[LlmUser]]:
    return [c for sub in of.__subclasses__() for c in (sub, *_subclasses(sub))]


def on_parser(parser: Any, **_: Any) -> None:
    """Our flags, and Locust's defaults where they would spoil a run. Called for each page of the web UI."""
    if "defaults" not in _state:
        stdio.make_usable()
        path = config_path(sys.argv[1:])
        scenario = _scenario()
        try:
            _state.update(defaults=effective_defaults(scenario, path), config=path, scenario=scenario)
        except ConfigError as e:
            exit_with(str(e), exitcodes.USAGE)
        csvfile.install()
        early.install()
        channel.install()
        _state["channel"] = channel.own_channel(sys.argv[1:], os.environ)
    defaults: Settings = _state["defaults"]
    scenario = _state["scenario"]
    add_options(parser, defaults)
    parser.set_defaults(
        num_users=defaults.users,
        spawn_rate=SPAWN_RATE,
        stop_timeout=STOP_TIMEOUT_S,
        run_time=scenario.run_time_s if scenario else None,
        only_summary=True,
        web_host=WEB_HOST,
        web_login=all(os.environ.get(name) for name in LOGIN_ENV),
        **_state["channel"],
    )


def on_init(environment: Any, **_: Any) -> None:
    options = environment.parsed_options
    if options.print_stats:
        options.only_summary = False
    if os.environ.get(PLAIN_ENV):
        _plain_log(options)
    logging.getLogger("loadgen").setLevel(logging.INFO)
    # StopTest is raised in a greenlet of Locust's web UI for a run that cannot be, which has been told in a
    # sentence. Ctrl-C before a run has begun needs no words.
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, StopTest, KeyboardInterrupt)
    if isinstance(environment.runner, WorkerRunner):
        worker = _state["session"] = LlmUser.workplace = WorkerSession(environment)
        gevent.signal_handler(signal.SIGINT, worker.interrupted)
        early.listen()
    else:
        _begin_session(environment, options)
    # A run makes few objects that live long and many that die at once. Everything that has been loaded so
    # far is set aside, so that a full collection does not hold up the reader while it walks through it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 50)


def _begin_session(environment: Any, options: Any) -> None:
    master = isinstance(environment.runner, MasterRunner)
    kind = MasterSession if master else Session
    session = _state["session"] = kind(environment, _state["defaults"], _state["config"])
    session.shapes.take_over(session.first_users)
    LlmUser.workplace = session
    if isinstance(session, MasterSession):
        session.listen()
        # The users of a worker that has gone are given to the others. (Locust's default: to nobody.)
        options.enable_rebalancing = True
    # Python's own handler may raise anywhere, and one that it raises in a handler of fork() is lost: the run
    # would begin. This one raises where something is waited for.
    waiting = gevent.signal_handler(signal.SIGINT, _interrupted)
    try:
        if options.headless:
            session.check()
        else:
            from loadgen.webui import install  # what a run without a page has no use for

            session.settings()
            session.live = install(environment, options)
    except MISTAKES as e:
        exit_with(str(e), exitcodes.USAGE if isinstance(e, ConfigError) else exitcodes.FAILED)
    except KeyboardInterrupt:
        sys.exit(exitcodes.INTERRUPTED)
    finally:
        waiting.cancel()
    Interrupt(session).install()


def _interrupted() -> None:
    raise KeyboardInterrupt


def _plain_log(options: Any) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    ours = logging.getLogger("loadgen")
    if os.environ.get(QUIET_ENV):
        handler.setLevel(logging.WARNING)
    ours.handlers = [handler]
    ours.propagate = False
    if not options.print_stats:
        logging.getLogger("locust.stats_logger").setLevel(logging.WARNING)


def on_test_start(**_: Any) -> None:
    _state["session"].test_start()


def on_spawning_complete(**_: Any) -> None:
    _state["session"].spawning_complete()


def on_test_stopping(**_: Any) -> None:
    _state["session"].test_stopping()


def on_test_stop(**_: Any) -> None:
    _state["session"].test_stop()


def on_quitting(**_: Any) -> None:
    _state["session"].quitting()


def on_quit(**_: Any) -> None:
    """After Locust's own tables, so that ours are what is left on the screen."""
    _state["session"].show_result()
    _state["session"].wait_for_deliveries()


_LISTENERS: tuple[tuple[Any, Callable[..., None]], ...] = (
    (events.init_command_line_parser, on_parser),
    (events.init, on_init),
    (events.test_start, on_test_start),
    (events.spawning_complete, on_spawning_complete),
    (events.test_stopping, on_test_stopping),
    (events.test_stop, on_test_stop),
    (events.quitting, on_quitting),
    (events.quit, on_quit),
)
for _hook, _listener in _LISTENERS:
    _hook.add_listener(_listener)
