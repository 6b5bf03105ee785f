# Python and torch in an environment of its own, and a user without rights.
#
# BASE_IMAGE: a Debian or Ubuntu with Python 3.10 or newer. For a GPU, an image that has the MUSA SDK in /usr/local/musa.
ARG BASE_IMAGE=debian:bookworm-slim
FROM ${BASE_IMAGE}

# The torch that the wheels of the release image were compiled for (their version names it: +torch2.13).
ARG TORCH_VERSION=2.13.0

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

RUN groupadd --gid 1000 musa \
    && useradd --uid 1000 --gid musa --create-home --shell /bin/bash musa \
    && install --directory --owner=musa --group=musa /opt/musa /workspace

# mt-container-toolkit gives a container the devices that this names.
ENV MTHREADS_VISIBLE_DEVICES=all \
    LANG=C.UTF-8 \
    VIRTUAL_ENV=/opt/musa \
    PATH=/opt/musa/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

USER 1000:1000
WORKDIR /workspace
RUN python3 -m venv /opt/musa \
    && pip install --no-cache-dir "torch==${TORCH_VERSION}" numpy

CMD ["python"]
