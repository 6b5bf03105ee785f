from musa_runtime.parallel import *
