# The wheels in dist/ on the oldest Debian whose archive could be reached: a check of their platform tag, not an
# image for users.
#
# Debian 11 has glibc 2.31. Its Python, 3.9, is too old for the packages, so Debian 12's is compiled.
# Its g++, 10, compiles the kernels of torch.compile.
ARG BASE_IMAGE=debian:bullseye-slim
FROM ${BASE_IMAGE}

# The torch that the wheels were compiled for.
ARG TORCH_VERSION=2.13.0

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates dpkg-dev g++ libbz2-dev libc6-dev libffi-dev \
    liblzma-dev libssl-dev make zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /usr/src
RUN sed --quiet 's/^deb \(.*\) bullseye main.*/deb-src \1 bookworm main/p' /etc/apt/sources.list \
    > /etc/apt/sources.list.d/bookworm.list \
    && apt-get update \
    && apt-get source --download-only python3.11 \
    && tar --extract --file "$(echo python3.11_*.orig.tar.*)" --one-top-level=python --strip-components=1 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /usr/src/python
RUN ./configure --prefix=/opt/python > /dev/null \
    && make --jobs="$(nproc)" > /dev/null \
    && make install > /dev/null

RUN groupadd --gid 1000 musa \
    && useradd --uid 1000 --gid musa --create-home --shell /bin/bash musa \
    && install --directory --owner=musa --group=musa /opt/musa /workspace

ENV LANG=C.UTF-8 \
    VIRTUAL_ENV=/opt/musa \
    PATH=/opt/musa/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

USER 1000:1000
WORKDIR /workspace
RUN /opt/python/bin/python3 -m venv /opt/musa \
    && pip install --no-cache-dir "torch==${TORCH_VERSION}" numpy matplotlib pluggy "PyYAML>=6" scikit-learn \
    "setuptools>=70" tqdm
RUN --mount=type=bind,source=dist,target=/mnt/dist \
    pip install --no-cache-dir --no-index --find-links=/mnt/dist "torch-musa[all,compat,as-cuda,emulator]"

RUN python -c 'import platform, torch; print(*platform.libc_ver(), (torch.ones(2, 2, device="musa") @ torch.ones(2, 2, device="musa")).sum())'
RUN --mount=type=bind,source=examples/train_digits.py,target=/mnt/train_digits.py \
    python /mnt/train_digits.py --device musa --out /workspace/digits
RUN python -c 'import torch; from torch._inductor import metrics; x = torch.randn(64, 64, device="musa"); torch.testing.assert_close(torch.compile(torch.nn.functional.gelu)(x), torch.nn.functional.gelu(x)); assert metrics.generated_kernel_count; print("kernels compiled:", metrics.generated_kernel_count)' \
    && python -c 'import torch_musa; from torch_musa.optim import FusedLAMB; print(torch_musa.get_device_name(0), FusedLAMB.__name__)' \
    && TORCH_MUSA_AS_CUDA=1 python -c 'import torch; x = torch.ones(2, 2, device="cuda"); print((x @ x).sum(), torch.cuda.get_device_name())'

HEALTHCHECK --interval=5m --timeout=2m --start-period=10s --retries=1 \
    CMD ["python", "-m", "torch_musa", "doctor"]
CMD ["python"]
