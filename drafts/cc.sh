SP=/work/main/.venv/lib/python3.11/site-packages
nice -n 10 /tmp/emu/inst/sdk/bin/mcc -std=c++20 -O2 -fPIC -include /tmp/emu/compat/prelude.h -c $1.mu -I/tmp/emu/compat -I$SP/musa_runtime/include -I/tmp/emu/hdr -isystem $SP/torch/include -isystem $SP/torch/include/torch/csrc/api/include -o $1.o
