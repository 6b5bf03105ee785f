from musa_runtime.profiler import *
