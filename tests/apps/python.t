# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
needs /usr/bin/python3 || { skip python "no python3"; finish; }
py() { # NAME <PROGRAM
	prog=$(cat)
	app "$1" <<END
/usr/bin/python3 - <<'PY'
$prog
PY
END
}
py threads <<'END'
import threading, queue, time
from concurrent.futures import ThreadPoolExecutor
q, out, lock, n = queue.Queue(), [], threading.Lock(), 0
def work():
    global n
    while (x := q.get()) is not None:
        with lock: n += x
ts = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in ts]; [q.put(i) for i in range(2000)]; [q.put(None) for _ in ts]; [t.join() for t in ts]
print(n, sum(ThreadPoolExecutor(4).map(lambda x: x * x, range(100))))
e = threading.Event(); threading.Timer(0.1, e.set).start(); print(e.wait(5), e.wait(0)); c = threading.Condition()
with c: print(c.wait(0.05))
b = threading.Barrier(3); r = []; ts = [threading.Thread(target=lambda: r.append(b.wait())) for _ in range(3)]; [t.start() for t in ts]; [t.join() for t in ts]; print(sorted(r))
END
py subprocess <<'END'
import subprocess as s, sys, os, signal
print(s.run(['sh', '-c', 'echo out; echo err >&2; exit 3'], capture_output=True)); print(s.check_output('tr a-z A-Z', shell=True, input=b'abc' * 50000)[-3:])
try: s.run(['sleep', '9'], timeout=0.2)
except s.TimeoutExpired as e: print('timeout', round(e.timeout, 1))
try: s.run(['/nosuch'])
except FileNotFoundError as e: print(e)
p = s.Popen(['sleep', '9'], start_new_session=True); os.killpg(p.pid, signal.SIGTERM); print(p.wait()); r, w = os.pipe()
p = s.Popen([sys.executable, '-c', f'import os; os.write({w}, b"fd")'], pass_fds=[w]); p.wait(); print(os.read(r, 9)); print(s.run('kill -9 $$', shell=True).returncode, s.run(['env'], env={'A': 'b'}, capture_output=True).stdout, s.run(['pwd'], cwd='/usr').returncode)
print(os.waitstatus_to_exitcode(os.system('exit 5')), os.popen('echo popen').read(), os.posix_spawn('/bin/true', ['true'], {}) > 0, os.wait()[1]); a = s.Popen(['seq', '9'], stdout=s.PIPE); print(s.check_output(['wc', '-l'], stdin=a.stdout))
END
app multiprocessing <<'END'
cat > m.py <<'PY'
import multiprocessing as mp, os
from multiprocessing import shared_memory
def sq(x): return x * x
def fill(name): shared_memory.SharedMemory(name).buf[0] = 77
def put(q, v, l):
    q.put(os.getppid() != 0)
    with l: v.value += 5
if __name__ == '__main__':
    for m in 'fork', 'spawn', 'forkserver':
        c = mp.get_context(m)
        with c.Pool(3) as p: print(m, sum(p.map(sq, range(200))))
    s = shared_memory.SharedMemory(create=True, size=4096); p = mp.Process(target=fill, args=(s.name,)); p.start(); p.join(); print(s.buf[0], p.exitcode); s.close(); s.unlink()
    q, v, l = mp.Queue(), mp.Value('i', 0), mp.Lock(); ps = [mp.Process(target=put, args=(q, v, l)) for _ in range(4)]; [p.start() for p in ps]; print([q.get() for _ in ps]); [p.join() for p in ps]; print(v.value)
    with mp.Manager() as m: d = m.dict(); d['x'] = 1; print(dict(d)); a, b = mp.Pipe(); a.send({'k': [1]}); print(b.recv(), b.poll(0.1))
PY
/usr/bin/python3 m.py
END
py sqlite3 <<'END'
import sqlite3, os, threading
for path, mode in (('a.db', 'delete'), ('b.db', 'wal'), ('/tmp/c.db', 'wal'), (':memory:', 'memory')):
    d = sqlite3.connect(path, timeout=10); print(d.execute(f'pragma journal_mode={mode}').fetchone()); d.execute('create table t(i integer primary key, s text)'); d.executemany('insert into t(s) values(?)', [(str(i),) for i in range(3000)]); d.commit()
    d.execute('delete from t where i % 2'); d.rollback(); print(d.execute('select count(*), sum(i) from t').fetchone(), d.execute('pragma integrity_check').fetchone())
    if path != ':memory:':
        def add():
            c = sqlite3.connect(path, timeout=20)
            for i in range(5):
                with c: c.execute('insert into t(s) values(1)')
            c.close()
        ts = [threading.Thread(target=add) for _ in range(3)]; [t.start() for t in ts]; [t.join() for t in ts]; print(d.execute('select count(*) from t').fetchone())
        if os.fork() == 0: add(); os._exit(0)
        print(os.wait()[1]); d.execute('vacuum'); d.close(); print(os.path.exists(path + '-wal')); os.unlink(path)
END
py asyncio <<'END'
import asyncio, os, signal
async def serve(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
async def main():
    s = await asyncio.start_unix_server(serve, 'sock')
    async def one(i):
        r, w = await asyncio.open_unix_connection('sock'); w.write(b'msg%d\n' % i); x = await r.read(); w.close(); return x
    print(await asyncio.gather(*(one(i) for i in range(20)))); s.close()
    p = await asyncio.create_subprocess_exec('sh', '-c', 'cat; exit 4', stdin=-1, stdout=-1); print(await p.communicate(b'hello'), p.returncode)
    ps = [await asyncio.create_subprocess_shell(f'sleep 0.{i}; exit {i}') for i in range(4)]; print(await asyncio.gather(*(p.wait() for p in ps)))
    try: await asyncio.wait_for(asyncio.sleep(9), 0.1)
    except asyncio.TimeoutError: print('timeout')
    l, f = asyncio.get_running_loop(), asyncio.Event(); l.add_signal_handler(signal.SIGUSR1, f.set); os.kill(os.getpid(), signal.SIGUSR1); await asyncio.wait_for(f.wait(), 5); print(await l.run_in_executor(None, sum, range(10)))
asyncio.run(main())
END
py signals <<'END'
import signal, os, time, select, faulthandler
got = []; signal.signal(signal.SIGALRM, lambda s, f: got.append(s)); signal.alarm(1); t = time.time(); time.sleep(1.3); print(got, 1.2 < time.time() - t < 10); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
while len(got) < 5: signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0); print(signal.sigtimedwait([signal.SIGUSR2], 0.05)); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, 40]); os.kill(os.getpid(), signal.SIGUSR2); print(signal.sigpending()); print(signal.sigwaitinfo([signal.SIGUSR2]).si_pid == os.getpid())
r, w = os.pipe2(os.O_NONBLOCK); signal.set_wakeup_fd(w); signal.signal(40, lambda *a: None); signal.pthread_sigmask(signal.SIG_UNBLOCK, [40]); os.kill(os.getpid(), 40); print(os.read(r, 9)); signal.signal(signal.SIGCHLD, lambda *a: got.append('c')); p = os.fork()
if not p: signal.signal(signal.SIGTERM, lambda *a: os._exit(8)); os.kill(os.getppid(), 40); time.sleep(5)
select.select([r], [], [], 5); os.kill(p, signal.SIGTERM); print(os.waitpid(p, 0)[1], 'c' in got)
try: signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt: print('int')
END
py files <<'END'
import tempfile, zipfile, mmap, os, select, fcntl, shutil, pathlib, stat, socket, errno, glob, json
with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile() as f, tempfile.TemporaryFile() as g: f.write(b'x'); f.flush(); g.write(b'y' * 99999); print(os.path.getsize(f.name), g.tell(), oct(os.stat(d).st_mode)); p = pathlib.Path(d, 'a/b'); p.mkdir(parents=True); (p / 'c').write_text('c'); print([x.name for x in pathlib.Path(d).rglob('*')]); shutil.copytree(d, 'cp'); shutil.make_archive('ar', 'gztar', 'cp')
with zipfile.ZipFile('z.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('d/x', 'data' * 999); z.write('cp/a/b/c')
z = zipfile.ZipFile('z.zip'); print(z.namelist(), z.testzip(), len(z.read('d/x'))); z.extractall('out'); print(glob.glob('out/**', recursive=True).__len__())
for path in 'map', '/tmp/map':
    with open(path, 'wb+') as f:
        f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); m[0:3] = b'abc'; m.flush(); print(os.pread(f.fileno(), 3, 0)); os.pwrite(f.fileno(), b'z', 4096); print(m[4096:4097]); 
        if os.fork() == 0: m[1] = 88; os._exit(0)
        os.wait(); print(m[:3]); m.resize(16384); print(len(m), os.path.getsize(path)); m.close(); p = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE); p[0] = 0; print(os.pread(f.fileno(), 1, 0)); fcntl.flock(f, fcntl.LOCK_EX); h = open(path)
        try: fcntl.flock(h, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: print('locked')
        fcntl.lockf(f, fcntl.LOCK_EX); os.posix_fallocate(f.fileno(), 0, 20000); print(os.fstat(f.fileno()).st_size); os.sendfile(os.open('sf', os.O_CREAT | os.O_WRONLY), f.fileno(), 0, 100); print(os.path.getsize('sf'), os.copy_file_range(f.fileno(), os.open('cfr', os.O_CREAT | os.O_WRONLY), 50, 0))
a, b = socket.socketpair(); a.send(b'x'); print(select.select([b], [a], [], 1)[0] == [b]); e = select.epoll(); e.register(b, select.EPOLLIN | select.EPOLLET); print(e.poll(1)[0][1], e.poll(0.05)); po = select.poll(); po.register(a, select.POLLIN); b.close(); print(po.poll(1000)[0][1]); socket.send_fds(*(lambda s: (s[0], [b'm'], [1]))(socket.socketpair()))
r, w = os.pipe(); print(fcntl.fcntl(w, 1031, 65536), os.get_blocking(r)); os.setxattr('map', 'user.k', b'v') if hasattr(os, 'setxattr') else 0; print(os.getxattr('map', 'user.k'), os.listxattr('map')); print(sorted(e.name for e in os.scandir('.'))); m = os.memfd_create('m'); os.write(m, b'q'); print(os.readlink(f'/proc/self/fd/{m}'), os.cpu_count() > 0, len(os.urandom(9)), os.get_terminal_size.__name__, os.isatty(0)); 
END
app venv <<'END'
/usr/bin/python3 -m venv --without-pip v && . v/bin/activate && python -c 'import sys; print(sys.prefix == sys.base_prefix)'; python -m compileall -q v; echo $?; ls v | sort; python -m json.tool <<< '{"a":1}'; python -m timeit -n 1 -r 1 pass | wc -l
mkdir p; echo 'x = 1' > p/__init__.py; echo 'def test(): assert 1' > p/t.py; python -c 'import p.t; print(p.x, p.t.__cached__[-3:])'; python -m unittest discover 2>&1 | tail -n 1; python -c 'input()'; echo $?; python nosuch.py; echo $?; python -c 'import sys; sys.exit(300)'; echo $?; python -c 'print(1); import os; os.abort()'; echo $?
END
finish
