# The release image with what builds extensions, and this tree: mount a checkout at /workspace.
#
# BASE_IMAGE: made of release.Dockerfile.
ARG BASE_IMAGE=torch-musa
FROM ${BASE_IMAGE}

# Architectures that kernels are compiled for, as "22;31"; empty for all that mcc can.
ARG TORCH_MUSA_ARCH_LIST=""
ENV TORCH_MUSA_ARCH_LIST=${TORCH_MUSA_ARCH_LIST}

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
USER 0:0
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ gdb git iproute2 libgtest-dev make python3-dev \
    && rm -rf /var/lib/apt/lists/*

USER 1000:1000
RUN --mount=type=bind,source=requirements-dev.txt,target=/mnt/requirements-dev.txt \
    grep --invert-match '^torch==' /mnt/requirements-dev.txt > "${HOME}/requirements.txt" \
    && pip install --no-cache-dir --requirement "${HOME}/requirements.txt"

CMD ["bash"]
