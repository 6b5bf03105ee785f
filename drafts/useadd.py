import torch, time
torch.musa.init()
torch.ops.load_library("/tmp/emu/libadd.so")
def t(f, n=30):
    f(); f(); best=1e9
    for _ in range(n):
        b=time.perf_counter(); f(); torch.musa.synchronize(); best=min(best,time.perf_counter()-b)
    return round(best*1e6,1)
for shape in [(10,),(1000,1000),(1000,1003)]:
    x=torch.randn(*shape); y=torch.randn(*shape); d=x.to("musa"); e=y.to("musa"); o=torch.empty_like(x); p=torch.empty_like(d)
    r=torch.ops.trial.add(d,e,p)
    print(shape, torch.equal(r.cpu(), x+y), "simt us", t(lambda: torch.ops.trial.add(d,e,p)), "cpu us", t(lambda: torch.add(x,y,out=o)))
x=torch.randn(1000,1000); d=x.to("musa"); p=torch.empty_like(d); o=torch.empty_like(x)
print("transposed", torch.equal(torch.ops.trial.add(d,d.t(),p).cpu(), x+x.t()), t(lambda: torch.ops.trial.add(d,d.t(),p)), t(lambda: torch.add(x,x.t(),out=o)))
for dim in (-1,0,1):
    r=torch.ops.trial.sum(d,dim).cpu(); q=x.sum() if dim<0 else x.sum(dim,keepdim=True)
    print("sum",dim, (r-q).abs().max().item(), "simt", t(lambda: torch.ops.trial.sum(d,dim)), "cpu", t(lambda: x.sum() if dim<0 else x.sum(dim)))
