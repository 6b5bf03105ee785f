from musa_runtime.graphs import *
