# matrixdp with its page, its workbooks and its signatures:
#   docker build -t matrixdp .
#   docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" matrixdp validate health.yaml
# Ledgers rely on file locks: keep them on a local volume, not on a network drive.
FROM python:3.13-slim AS built
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/matrixdp \
    && /opt/matrixdp/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[report,excel,sdmx,signatures]'

FROM python:3.13-slim
COPY --from=built /opt/matrixdp /opt/matrixdp
RUN useradd --create-home matrixdp
USER matrixdp
WORKDIR /work
ENTRYPOINT ["/opt/matrixdp/bin/matrixdp"]
