# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
needs node || { skip node "no node"; finish; }
js() { # NAME <PROGRAM
	prog=$(cat)
	app "$1" <<END
cat > p.js <<'JS'
$prog
JS
node p.js
END
}
js fs <<'END'
const fs = require('fs'), p = require('path'), os = require('os')
fs.mkdirSync('a/b', {recursive: true}); for (let i = 0; i < 200; i++) fs.writeFileSync(`a/f${i}`, 'x'.repeat(i)); console.log(fs.readdirSync('a').length, fs.statSync('a/f9').size, fs.existsSync('no'))
fs.symlinkSync('f1', 'a/l'); fs.renameSync('a/f2', 'a/b/r'); fs.copyFileSync('a/f3', 'a/c'); fs.appendFileSync('a/c', 'yy'); console.log(fs.readlinkSync('a/l'), fs.readFileSync('a/c', 'utf8'), fs.realpathSync('a/l').split('/').pop()); fs.chmodSync('a/c', 0o600); console.log(fs.statSync('a/c').mode.toString(8))
try { fs.readFileSync('no') } catch (e) { console.log(e.code, e.syscall) }
(async () => { const f = fs.promises; await Promise.all([...Array(50).keys()].map(i => f.writeFile(`a/p${i}`, `${i}`))); const r = await Promise.all([...Array(50).keys()].map(i => f.readFile(`a/p${i}`, 'utf8'))); console.log(r.join('')); const t = await f.mkdtemp(p.join(os.tmpdir(), 'x-')); await f.writeFile(t + '/q', 'q'); await f.rm(t, {recursive: true}); const h = await f.open('a/h', 'w+'); await h.write('hello', 0); await h.truncate(3); await h.sync(); await h.close(); console.log(fs.readFileSync('a/h', 'utf8')); await f.cp('a', 'z', {recursive: true}); console.log(fs.readdirSync('z').length); fs.rmSync('a', {recursive: true}); console.log(fs.existsSync('a')) })()
END
js child_process <<'END'
const c = require('child_process')
console.log(c.execSync('echo sync; exit 0') + '', c.spawnSync('sh', ['-c', 'echo e >&2; exit 3']).status, c.spawnSync('sleep', ['5'], {timeout: 200}).signal); const t = c.spawn('tr', ['a-z', 'A-Z']); let o = ''; t.stdout.on('data', d => o += d); t.on('close', r => { console.log('tr', r, o)
c.exec('kill -9 $$', (e) => { console.log(e.signal); const f = c.fork(__filename + '.child.js'); f.on('message', m => { console.log(m); f.disconnect() }); f.send({n: 20}); f.on('exit', r => { console.log('fork', r); c.execFile('nosuch', e => console.log(e.code)); const k = c.spawn('sleep', ['9'], {detached: true}); k.on('exit', (r, s) => console.log(r, s)); process.kill(-k.pid) }) }) }); t.stdin.end('hello')
require('fs').writeFileSync(__filename + '.child.js', 'process.on("message", m => process.send({r: m.n * 2}))'); process.on('SIGUSR2', () => console.log('usr2')); process.kill(process.pid, 'SIGUSR2'); process.on('exit', r => console.log('exit', r))
END
js worker_threads <<'END'
const {Worker, isMainThread, parentPort, workerData} = require('worker_threads')
if (isMainThread) { const s = new SharedArrayBuffer(4), a = new Int32Array(s); let n = 3; for (let i = 0; i < 3; i++) { const w = new Worker(__filename, {workerData: s}); w.on('message', () => { if (!--n) console.log('sum', a[0]) }) } } else { const a = new Int32Array(workerData); for (let i = 0; i < 1000; i++) Atomics.add(a, 0, 1); Atomics.wait(a, 0, -1, 10); parentPort.postMessage(1) }
END
js streams-and-timers <<'END'
const fs = require('fs'), z = require('zlib'), {pipeline} = require('stream/promises'), cr = require('crypto'), net = require('net');
(async () => { fs.writeFileSync('in', Buffer.alloc(500000, 'abc')); await pipeline(fs.createReadStream('in'), z.createGzip(), fs.createWriteStream('out.gz')); await pipeline(fs.createReadStream('out.gz'), z.createGunzip(), fs.createWriteStream('out')); console.log(cr.createHash('sha1').update(fs.readFileSync('out')).digest('hex')); const s = net.createServer(c => c.pipe(c)).listen('sock', () => { const c = net.connect('sock', () => c.end('ping')); c.on('data', d => { console.log(d + ''); s.close(timers) }) })
const timers = async () => { setTimeout(() => { console.log('t1'); setTimeout(() => console.log('t2'), 60) }, 300); setImmediate(() => console.log('imm')); process.nextTick(() => console.log('tick')); cr.randomBytes(8, (e, b) => b.length); console.log(await require('util').promisify(cr.pbkdf2)('a', 'b', 1000, 8, 'sha1')) } })();
END
app stdin-eval-and-failures <<'END'
echo 'console.log(1 + 1)' | node; node -e 'process.stdin.on("data", d => console.log(d.length)).on("end", () => console.log("end"))' < /dev/null; node -p 'process.argv.length' a b; node -e 'throw 1' ; echo $?; node nosuch; echo $?; node -e 'process.exit(9)'; echo $?; node -e 'process.abort()'; echo $?; seq 20000 | node -e 'let n = 0; process.stdin.on("data", d => n += d.length).on("end", () => console.log(n))'; node -p 'os.platform() + os.cpus().length + os.endianness()'
END
finish
