"""The login of Locust's web page: one user, whose name and password hash are in the environment."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import hmac
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gevent
from flask import redirect, request, session, url_for
from flask_login import UserMixin, login_user
from gevent.lock import BoundedSemaphore
from werkzeug.security import check_password_hash

from loadgen.config import ConfigError

USER_ENV = "LOADGEN_WEB_USER"
HASH_ENV = "LOADGEN_WEB_PASSWORD_HASH"
WRONG_S = 1.0
_HASH = re.compile(r"(scrypt:\d+:\d+:\d+|pbkdf2:sha(256|512):\d+)\$[^$]+\$[0-9a-f]+")
HOW = f"set {USER_ENV} and {HASH_ENV}; `loadgen web-password` makes a hash"


@dataclass(frozen=True)
class Login:
    """Who may come in. The hash is not shown anywhere, not even in a traceback."""

    user: str
    password_hash: str = field(repr=False)

    def right(self, user: str, password: str) -> bool:
        """Takes a tenth of a second of processor time, whoever asks."""
        known = hmac.compare_digest(user.encode(), self.user.encode())
        return check_password_hash(self.password_hash, password) and known


class _Person(UserMixin):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        self.id = name


def login_from(env: Mapping[str, str] = os.environ) -> Login | None:
    """None if neither variable is set. Raises ConfigError if they are not a user and a hash."""
    user, password_hash = env.get(USER_ENV, "").strip(), env.get(HASH_ENV, "").strip()
    if not user and not password_hash:
        return None
    if not user or not password_hash:
        missing = HASH_ENV if user else USER_ENV
        raise ConfigError(f"the web page's login lacks {missing}: {HOW}")
    if not _HASH.fullmatch(password_hash):
        raise ConfigError(
            f"{HASH_ENV} is no hash of a password, or has lost its $ signs (in a shell and in .env it needs "
            "single quotes): `loadgen web-password` makes one"
        )
    return Login(user, password_hash)


def install_login(web_ui: Any, login: Login, base_path: str = "") -> None:
    """Give Locust's --web-login the user that it needs."""
    app = web_ui.app
    app.secret_key = secrets.token_bytes(32)  # who is in stays in for as long as this process lives
    app.config.update(
        # Cookies know no ports: two of these on one host would throw each other's users out.
        SESSION_COOKIE_NAME=f"loadgen_{web_ui.port}",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=bool(web_ui.tls_cert),
    )
    web_ui.login_manager.user_loader(lambda name: _Person(name) if name == login.user else None)
    callback = f"{base_path}/llm/login"
    web_ui.auth_args = {**web_ui.auth_args, "username_password_callback": callback}
    one_at_a_time = BoundedSemaphore()

    # GET as well: the form of Locust 2.46 has no method.
    @app.route(callback, methods=["GET", "POST"], endpoint="loadgen_login")  # type: ignore[untyped-decorator]
    def come_in() -> Any:
        user, password = request.values.get("username", ""), request.values.get("password", "")
        with one_at_a_time:  # guessing is slow, and streams are read meanwhile
            right = gevent.get_hub().threadpool.apply(login.right, (user, password[:1000]))
            if not right:
                gevent.sleep(WRONG_S)
        if not right:
            session["auth_error"] = "That is not the user, or not the password."
            return redirect(url_for("locust.login"))
        login_user(_Person(login.user))
        return redirect(url_for("locust.index"))
