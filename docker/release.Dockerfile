# The packages, from wheels in dist/: those of the workflow "wheels", or of `python3 tools/dev.py wheels`.
#
# BASE_IMAGE: made of base.Dockerfile.
ARG BASE_IMAGE=torch-musa-base
FROM ${BASE_IMAGE}

# Extras of torch-musa. For a machine without a GPU: all,emulator
ARG EXTRAS=all

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# Third-party requirements come from the index; the packages themselves only from dist/, since an index
# may have other packages of these names.
RUN --mount=type=bind,source=dist,target=/mnt/dist \
    pip install --no-cache-dir pluggy "PyYAML>=6" "setuptools>=70" \
    && pip install --no-cache-dir --no-index --find-links=/mnt/dist "torch-musa[${EXTRAS}]"

# The doctor ends with status 1 if a check fails, from torch to a computed result.
HEALTHCHECK --interval=5m --timeout=2m --start-period=10s --retries=1 \
    CMD ["python", "-m", "torch_musa", "doctor"]
CMD ["python"]
