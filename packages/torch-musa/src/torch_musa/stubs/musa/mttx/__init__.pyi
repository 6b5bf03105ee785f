from musa_runtime.markers import *
