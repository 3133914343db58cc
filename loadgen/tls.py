"""Which TLS servers are trusted: one answer for streams and for control calls."""

from __future__ import annotations

import ssl

import certifi

from loadgen.config import ConfigError, EngineSpec, InfluxdbSpec


def tls_context(spec: EngineSpec | InfluxdbSpec) -> ssl.SSLContext:
    """A client's context for this server: verified against `ca_file`, else against the system's
    certificates and certifi's; not verified at all only where `verify_tls` is off.

    ConfigError when `ca_file` can not be read.
    """
    try:
        context = ssl.create_default_context(cafile=spec.ca_file)
    except FileNotFoundError:
        raise ConfigError(f"ca_file {spec.ca_file} does not exist") from None
    except (OSError, ssl.SSLError) as e:
        said = e.strerror or e
        raise ConfigError(
            f"ca_file {spec.ca_file} is no file of certificates that can be read: {said}"
        ) from None
    if spec.ca_file is None:
        context.load_verify_locations(certifi.where())
    if not spec.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
