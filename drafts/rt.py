import sys, pathlib; sys.path.insert(0,'/tmp/ported')
import musa_emulator, pytest
musa_emulator.home=lambda: pathlib.Path("/tmp/emu/inst/sdk")
sys.exit(pytest.main(['-q','-p','no:cacheprovider','--noconftest',*sys.argv[1:]]))
