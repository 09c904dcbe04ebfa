// The worker for npm's contestants: the same jobs, keys and page as worker.go. The page is read and
// written as a file, since there is no mmap here; its words are those of shared.go.
'use strict';
const fs = require('fs');
const { createRequire } = require('module');

const GATE = 0, STOP = 1, COUNTER = 2, TURN = 3, SLOTS = 64;
const BATCHES = 40;
const [job, who, ...rest] = process.argv.slice(2);
const key = {};
for (const arg of rest) {
  const at = arg.indexOf('=');
  key[arg.slice(0, at)] = arg.slice(at + 1);
}
const need = createRequire(key.modules + '/x.js');
const lockfile = need('proper-lockfile');
const n = Number(key.n), path = key.path;

const mono = () => Number(process.hrtime.bigint());
const cpu = () => { const u = process.cpuUsage(); return (u.user + u.system) * 1000; };
const open = (name) => fs.openSync(name, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
const page = open(key.page);
const word = Buffer.alloc(8);
const load = (i) => { fs.readSync(page, word, 0, 8, 8 * i); return Number(word.readBigInt64LE()); };
const store = (i, v) => { word.writeBigInt64LE(BigInt(v)); fs.writeSync(page, word, 0, 8, 8 * i); };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Its own default is not to wait at all. This is as eager as setTimeout allows.
const waiting = { retries: { forever: true, minTimeout: 1, maxTimeout: 5, factor: 1.5, randomize: true } };

// Where a holder is killed or stopped its lock is taken away after the shortest time that there is.
const dying = { ...waiting, stale: 2000, update: 1000 };

async function gate() {
  process.stdout.write('ready\n');
  while (load(GATE) === 0) await sleep(0.1);
  const at = load(GATE);
  while (mono() < at);
}

async function cycle() {
  const turn = async (times) => {
    for (let i = 0; i < times; i++) await (await lockfile.lock(path))();
  };
  await turn(n / 10);
  process.stdout.write('ready\n');
  const took = [], c0 = cpu();
  for (let b = 0; b < BATCHES; b++) {
    const t0 = mono();
    await turn(n / BATCHES);
    took.push(mono() - t0);
  }
  const spent = cpu() - c0;
  took.sort((a, b) => a - b);
  process.stdout.write(`ns ${took[BATCHES / 2] * BATCHES}\ncpu ${spent}\n`);
}

async function contend() {
  await gate();
  const stop = load(STOP), log = [], c0 = cpu();
  for (;;) {
    const ask = mono();
    if (ask >= stop) break;
    const release = await lockfile.lock(path, waiting);
    const enter = mono(), seen = load(COUNTER);
    store(COUNTER, seen + 1);
    const leave = mono();
    await release();
    log.push(ask, enter, leave);
  }
  const spent = cpu() - c0;
  keep(log);
  process.stdout.write(`cpu ${spent}\n`);
}

// keep writes the stamps as shared.go reads them.
function keep(log) {
  const out = Buffer.alloc(8 + 8 * log.length);
  out.writeBigInt64LE(BigInt(log.length / 3));
  log.forEach((v, i) => out.writeBigInt64LE(BigInt(v), 8 + 8 * i));
  const f = open(key.log);
  fs.writeSync(f, out, 0, out.length, 0);
  fs.closeSync(f);
}

// entered locks, and says in the slot when it asked and when it held.
async function entered(write) {
  const slot = SLOTS + 2 * Number(key.id);
  process.stdout.write('ready\n');
  store(slot, mono());
  // What is taken away meanwhile is its loss: it goes on, as a program does that is stopped between two lines.
  const release = await lockfile.lock(path, { ...dying, onCompromised: () => {} });
  if (write) await need('write-file-atomic')(path, write);
  store(slot + 1, mono());
  return release;
}

async function enter() {
  await entered();
  await sleep(180000);
}

async function queue() {
  process.stdout.write('ready\n');
  const ask = mono();
  const release = await lockfile.lock(path, waiting);
  const enters = mono();
  store(COUNTER, load(COUNTER) + 1);
  keep([ask, enters, mono()]);
  await release();
}

async function pause() {
  const release = await entered();
  // What is stopped is between two lines, so nothing else of it runs before the write.
  while (load(TURN) === 0) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
  try { fs.writeFileSync(path + '.new', 'late\n'); fs.renameSync(path + '.new', path); } catch { process.stdout.write('refused 1\n'); }
  await release().catch(() => {});
}

async function second() {
  await (await entered('second\n'))();
}

async function wrap() {
  const release = await lockfile.lock(path, dying);
  process.stdout.write('ready\n');
  await new Promise((done) => require('child_process').spawn('sh', ['-c', key.command], { stdio: 'ignore' }).on('exit', done));
  await release();
}

// doc appends records until the document has n of them; doc-once appends n.
async function doc(once) {
  const write = need('write-file-atomic');
  if (once) process.stdout.write('ready\n'); else await gate();
  const start = mono();
  let done = 0;
  for (let more = true; more && !(once && done === n);) {
    const release = await lockfile.lock(path, waiting);
    const records = JSON.parse(fs.readFileSync(path, 'utf8'));
    more = once || records.length < n;
    if (more) {
      records.push({ worker: Number(key.id), seq: done, at: '2026-01-02T03:04:05.678Z', task: 'a record of two hundred bytes, the size of a line in the other workload: what somebody was asked to do, in plain words', status: 'open' });
      await write(path, JSON.stringify(records), { fsync: who.endsWith('+sync') });
      done++;
    }
    await release();
  }
  process.stdout.write(`done ${done}\nns ${mono() - start}\nended ${mono()}\n`);
}

const jobs = { cycle, contend, enter, queue, pause, second, wrap, doc: () => doc(false), 'doc-once': () => doc(true) };
jobs[job]().catch((err) => { console.error(err); process.exit(1); });
