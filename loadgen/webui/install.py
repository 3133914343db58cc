"""From Locust's init event to a web page with a tab, a live page, a guard and a login."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import argparse
import logging
from typing import Any
from urllib.parse import urlsplit

from loadgen.config import ConfigError
from loadgen.webui.guard import Guard, Guarded, allowed_hosts
from loadgen.webui.live import Live
from loadgen.webui.login import HOW, install_login, login_from
from loadgen.webui.pages import blueprint
from loadgen.webui.tab import install_tab

log = logging.getLogger("loadgen")

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def install(environment: Any, options: argparse.Namespace) -> Live | None:
    """The Live that the session tells of its runs; None without a web page. Raises ConfigError if a login is
    wanted and nobody could come in."""
    web_ui = environment.web_ui
    if web_ui is None:
        return None
    base_path = (options.web_base_path or "").rstrip("/")
    if options.web_login:
        login = login_from()
        if login is None:
            raise ConfigError(f"--web-login: nobody is known who may log in; {HOW}")
        install_login(web_ui, login, base_path)
    elif web_ui.host not in LOOPBACK:
        log.warning(
            "whoever reaches port %s of this machine can start load on any address; --web-login asks for a "
            "password, and without --web-host the page is for this machine only",
            web_ui.port,
        )
    live = Live()
    install_tab(live, web_ui, base_path)
    web_ui.app.register_blueprint(blueprint(live, web_ui, base_path))
    web_ui.app.debug = False  # Locust sets it; a page on a network must not show tracebacks
    names = [*allowed_hosts(), _name(options.web_host_display_name), _name(options.web_host)]
    web_ui.app.wsgi_app = Guarded(web_ui.app.wsgi_app, Guard(filter(None, names), base_path))
    scheme = "https" if web_ui.tls_cert else "http"
    log.info("live page: %s://%s:%s%s/llm", scheme, web_ui.host or "0.0.0.0", web_ui.port, base_path)
    return live


def _name(host: str | None) -> str:
    if not host or host == "*":  # Locust's word for all interfaces, not for all names
        return ""
    return (urlsplit(host if "//" in host else f"//{host}").hostname or "") if host else ""
