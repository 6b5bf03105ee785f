from musa_runtime.ops import *
