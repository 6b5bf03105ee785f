import datetime, os, signal, time, sys, faulthandler
faulthandler.dump_traceback_later(14, exit=True)
import torch
import torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.musa.set_device(rank)
dist.init_process_group("mccl", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=size, timeout=datetime.timedelta(seconds=3))
x = torch.ones(100, device="musa")
dist.all_reduce(x)
x.cpu()
if rank == 2:
    time.sleep(8)
    os._exit(7)
try:
    g = dist.new_group([0, 1, 2]); dist.all_reduce(x, group=g)
    x.cpu()
    print('went on')
except dist.DistBackendError as error:
    print(error, flush=True)
print("end", flush=True)
