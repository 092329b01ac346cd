// The first thing that runs on a fresh machine: plain JavaScript, nothing installed, Node 20 or newer. It installs what the lock file
// names, finds a Node that runs TypeScript as it is, and hands over to a script. Everything it says goes to standard error: standard
// output is the script's.
//
//   node bootstrap.mjs <script.ts> [arguments]      run a script
//   node bootstrap.mjs --bin <name> [arguments]     run a tool of node_modules/.bin

/* oxlint-disable typescript/no-unsafe-return -- plain JavaScript: nothing here has a type */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = 20;
/** The first Node line that runs our TypeScript without a build. */
const WANTED_NODE = 24;

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const modules = join(root, "node_modules");
const marker = join(modules, ".parley-installed");

function say(text) {
  process.stderr.write(`${text}\n`);
}

function giveUp(text) {
  say(text);
  process.exit(1);
}

/** What node_modules has to match: the lock file, on this kind of machine. */
function wanted() {
  const hash = createHash("sha256")
    .update(readFileSync(join(root, "pnpm-lock.yaml")))
    .digest("hex");
  return `${hash} ${process.platform}-${process.arch}`;
}

/** True when node_modules was installed from the present lock file. */
function isInstalled() {
  return existsSync(marker) && readFileSync(marker, "utf8") === wanted();
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Takes the lock file by linking one that already names us; a lock whose process is gone is removed. */
function takeLock(path) {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, String(process.pid));
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  try {
    if (!isAlive(Number(readFileSync(path, "utf8")))) rmSync(path, { force: true });
  } catch {
    // Released meanwhile.
  }
  return false;
}

/** Installs the dependencies unless they are there. Two of us at the same time: one installs, the other waits for it. */
async function install() {
  if (isInstalled()) return;
  const lock = join(root, ".parley", "install.lock");
  mkdirSync(dirname(lock), { recursive: true });
  for (let waited = false; !takeLock(lock); waited = true) {
    if (!waited) say("waiting for another installation of the dependencies");
    await new Promise((done) => setTimeout(done, 100));
  }
  process.once("exit", () => rmSync(lock, { force: true })); // giving up ends the process without unwinding
  try {
    if (isInstalled()) return;
    const { config } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    say(`installing dependencies (pnpm ${config.pnpm})`);
    const command = ["--yes", `pnpm@${config.pnpm}`, "install", "--frozen-lockfile"];
    const outcome = spawnSync("npx", command, {
      cwd: root,
      env: installEnvironment(),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    if (outcome.error !== undefined)
      giveUp(`npx could not be started (${outcome.error.message}). Install npm and try again.`);
    if (outcome.signal !== null) process.exit(128 + constants.signals[outcome.signal]);
    if (outcome.status !== 0) {
      process.stderr.write(outcome.stdout + outcome.stderr);
      const full = /ENOSPC|no space left/i.test(outcome.stdout + outcome.stderr);
      giveUp(
        full
          ? "The disk is full: free some space and start again."
          : "Installing the dependencies failed; what it said is above.",
      );
    }
    writeFileSync(marker, wanted());
  } finally {
    rmSync(lock, { force: true });
  }
}

/** pnpm asks before it rebuilds node_modules, unless it knows that nobody is there to answer. */
function installEnvironment() {
  return { ...process.env, CI: "true" };
}

/** A Node that runs TypeScript: the one that runs us, or the one among the dependencies. */
function findNode() {
  if (Number(process.versions.node.split(".")[0]) >= WANTED_NODE) return process.execPath;
  const pinned = join(modules, `node-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(pinned)) return pinned;
  return giveUp(
    `Node ${WANTED_NODE} or newer is needed on ${process.platform}-${process.arch}; this is ${process.version}. Install it from https://nodejs.org.`,
  );
}

/** True when the terminal sends Ctrl-C to our whole process group, so that the script has got it already. */
function terminalSignalsAll() {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , group, , terminal, foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return terminal !== "0" && group === foreground;
  } catch {
    return process.stdin.isTTY === true || process.stderr.isTTY === true;
  }
}

function handOver(command, args) {
  const PATH = `${join(modules, ".bin")}${delimiter}${process.env.PATH ?? ""}`;
  // What Node makes of our TypeScript is kept between runs: everything starts sooner and takes less memory.
  const env = { NODE_COMPILE_CACHE: join(modules, ".cache", "node"), ...process.env, PATH };
  const child = spawn(command, args, { stdio: "inherit", env });
  child.once("error", (error) => giveUp(`${command} could not be started: ${error.message}`));
  // npm passes Ctrl-C on to us although the terminal has sent it to everybody: pass it on only where nobody else does.
  process.on("SIGINT", () => {
    if (!terminalSignalsAll()) child.kill("SIGINT");
  });
  for (const signal of ["SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      child.kill(signal);
    });
  }
  // A signal to npm ends the shell between npm and us, which passes nothing on: a new parent means that we were meant.
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid;
    const watch = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(watch);
      child.kill("SIGTERM");
    }, 250);
  }
  child.once("exit", (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal]);
  });
}

const [first, ...rest] = process.argv.slice(2);
if (process.platform === "win32") giveUp("Parley runs on Linux and macOS; on Windows, start it inside WSL.");
if (Number(process.versions.node.split(".")[0]) < OLDEST_NODE)
  giveUp(`Node ${OLDEST_NODE} or newer is needed; this is ${process.version}.`);
if (first === undefined) giveUp("usage: node bootstrap.mjs <script.ts> [arguments] | --bin <name> [arguments]");
await install();
const node = findNode();
if (first === "--bin") {
  const [name = "", ...args] = rest;
  handOver(join(modules, ".bin", name), args);
} else {
  handOver(node, ["--conditions=@parley/source", resolve(first), ...rest]);
}
