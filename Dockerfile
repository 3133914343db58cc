# The load generator, the simulated engines and the GPU sampler: one image, `locust` and `loadgen` are its commands.
# docker-compose.yml uses it; by hand:   docker build -t loadgen . && docker run --rm loadgen loadgen --help
ARG PYTHON_IMAGE=python:3.13.9-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY loadgen loadgen
COPY locustfiles locustfiles
RUN python -m venv /opt/loadgen \
    && /opt/loadgen/bin/pip install --no-cache-dir --disable-pip-version-check '.[all]'

FROM ${PYTHON_IMAGE}
# A new named volume takes its owner from the folder that it covers, so runs/ must be there and be the user's.
RUN groupadd --gid 1000 loadgen \
    && useradd --uid 1000 --gid 1000 --home-dir /srv/loadgen --no-create-home --shell /usr/sbin/nologin loadgen \
    && install -d -o loadgen -g loadgen /srv/loadgen /srv/loadgen/runs
COPY --from=build /opt/loadgen /opt/loadgen
COPY locustfiles /srv/loadgen/locustfiles
ENV PATH=/opt/loadgen/bin:$PATH \
    PYTHONUNBUFFERED=1
WORKDIR /srv/loadgen
USER 1000:1000
EXPOSE 8089
CMD ["locust", "-f", "locustfiles/concurrency.py", "--web-host", "0.0.0.0"]
