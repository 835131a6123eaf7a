// Graphile Worker (node), in so many processes: says `ready` when its jobs are loaded, and `done` when the last is run and gone.
// usage: node graphile.mjs JOBS PROCESSES AT_ONCE LOCAL_QUEUE BATCH_DELAY_MS
import { fork } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const url = process.env.DATABASE_URL;

async function work(atOnce, queue, delay) {
  process.on("disconnect", () => process.exit(0));
  await new Promise((go) => {
    process.once("message", go);
    process.send("ready");
  });
  const worker = {
    connectionString: url,
    concurrentJobs: atOnce,
    maxPoolSize: atOnce + 1,
    pollInterval: 2000,
    localQueue: { size: queue, refetchDelay: { durationMs: 10 } },
    completeJobBatchDelay: delay,
    failJobBatchDelay: delay,
  };
  await run({ taskList: { noop: async () => {} }, noHandleSignals: true, crontab: "", preset: { worker } });
}

async function load(pool, jobs) {
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  const add = `SELECT count(*) FROM graphile_worker.add_jobs((
    SELECT array_agg(row('noop', json_build_object('id', g), null, null, null, null, null, null)::graphile_worker.job_spec)
    FROM generate_series($1::int, $2::int) g))`;
  for (let from = 1; from <= jobs; from += 10000) {
    await pool.query(add, [from, Math.min(jobs, from + 9999)]);
  }
  await pool.query("ANALYZE");
  await pool.query("CHECKPOINT");
  await utils.release();
}

async function lead(jobs, processes, rest) {
  const pool = new pg.Pool({ connectionString: url });
  await load(pool, jobs);
  const children = [];
  for (let n = 0; n < processes; n++) {
    const env = { ...process.env, NO_LOG_SUCCESS: "1" };
    const child = fork(fileURLToPath(import.meta.url), ["child", ...rest], { env, stdio: ["ignore", "ignore", "inherit", "ipc"] });
    await new Promise((ready) => child.once("message", ready));
    children.push(child);
  }
  console.log("ready");
  const input = createInterface({ input: process.stdin });
  await new Promise((go) => input.once("line", go));
  children.forEach((child) => child.send("go"));
  for (;;) {
    const { rows } = await pool.query("SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS some");
    if (!rows[0].some) break;
    await new Promise((later) => setTimeout(later, 20));
  }
  console.log("done");
  input.on("close", () => {
    children.forEach((child) => child.kill("SIGKILL"));
    process.exit(0);
  });
}

const [first, ...rest] = process.argv.slice(2);
if (first === "child") await work(...rest.map(Number));
else await lead(Number(first), Number(rest[0]), rest.slice(1));
