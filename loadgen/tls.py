"""Which TLS servers are trusted: one answer for streams and for control calls."""

from __future__ import annotations

import ssl

import certifi

from loadgen.config import ConfigError, EngineSpec, InfluxdbSpec


def tls_context(spec: EngineSpec | InfluxdbSpec | None) -> ssl.SSLContext:
    """A client's context for this server: verified against `ca_file`, else against the system's
    certificates and certifi's; not verified at all only where `verify_tls` is off. None: nothing was set.

    ConfigError when `ca_file` can not be read.
    """
    ca_file = spec.ca_file if spec else None
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except FileNotFoundError:
        raise ConfigError(f"ca_file {ca_file} does not exist") from None
    except (OSError, ssl.SSLError) as e:
        said = e.strerror or e
        raise ConfigError(f"ca_file {ca_file} is no file of certificates that can be read: {said}") from None
    if ca_file is None:
        context.load_verify_locations(certifi.where())
    if spec and not spec.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
