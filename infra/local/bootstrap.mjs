// The first program on a new machine: plain JavaScript without dependencies, for Node 20 or newer. It installs the locked dependencies,
// finds a Node that runs TypeScript directly, and runs a script with it. Its own output goes to standard error: standard output
// belongs to the script.
//
//   node bootstrap.mjs <script.ts> [arguments]      run a script
//   node bootstrap.mjs --bin <name> [arguments]     run a tool of node_modules/.bin

/* oxlint-disable typescript/no-unsafe-return -- plain JavaScript: nothing here has a type */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  accessSync,
  constants as fsConstants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = 20;
/** The first Node version that runs the repository's TypeScript without a build. */
const WANTED_NODE = 24;

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const modules = join(root, "node_modules");
const marker = join(modules, ".parley-installed");

function print(text) {
  process.stderr.write(`${text}\n`);
}

function giveUp(text) {
  print(text);
  process.exit(1);
}

/** The expected content of the marker: the hash of the lock file, the platform and the architecture. */
function wanted() {
  const hash = createHash("sha256")
    .update(readFileSync(join(root, "pnpm-lock.yaml")))
    .digest("hex");
  return `${hash} ${process.platform}-${process.arch}`;
}

/** True if node_modules was installed from the current lock file. */
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

/** Acquires the lock by linking a file that already names this process; removes the lock of a dead process. */
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

/** Installs the dependencies if they are missing or outdated. Of two concurrent processes, one installs and the other waits. */
async function install() {
  if (isInstalled()) return;
  const lock = join(root, ".parley", "install.lock");
  try {
    mkdirSync(dirname(lock), { recursive: true });
    if (existsSync(modules)) accessSync(modules, fsConstants.W_OK);
  } catch (error) {
    explainFolder(error);
  }
  for (let waited = false; !takeLock(lock); waited = true) {
    if (!waited) print("waiting for another installation of the dependencies");
    await new Promise((done) => setTimeout(done, 100));
  }
  process.once("exit", () => rmSync(lock, { force: true })); // giveUp() exits without running `finally`
  try {
    if (isInstalled()) return;
    await runPnpm();
    writeFileSync(marker, wanted());
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Installs with the pinned pnpm. Shows the number of packages on a terminal, and the whole output only if it fails. */
async function runPnpm() {
  const { config } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const begun = performance.now();
  const seconds = () => `${Math.round((performance.now() - begun) / 1000)} s`;
  const title = `installing dependencies (pnpm ${config.pnpm})`;
  print(title);
  const command = ["--yes", `pnpm@${config.pnpm}`, "install", "--frozen-lockfile"];
  const child = spawn("npx", command, { cwd: root, env: installEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  child.once("error", (error) => giveUp(`npx could not be started (${error.message}). Install npm and start again.`));
  let output = "";
  let packages = "";
  const read = (line) => {
    output += `${line}\n`;
    const [, all, have] = /^Progress: resolved (\d+), .*\badded (\d+)/.exec(line) ?? [];
    if (all !== undefined) packages = `${have} of ${all} packages, `;
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", read);
  const isTerminal = process.stderr.isTTY;
  const show = () => process.stderr.write(`\u001B[A\r\u001B[K${title}: ${packages}${seconds()}\n`);
  const watch = isTerminal ? setInterval(show, 500) : undefined;
  const [status, signal] = await once(child, "close");
  clearInterval(watch);
  if (signal !== null) process.exit(128 + constants.signals[signal]);
  if (status !== 0) {
    process.stderr.write(output);
    giveUp(
      /ENOSPC|no space left/i.test(output)
        ? "The disk is full. Free some space and start again."
        : "Installing the dependencies failed; its output is above.",
    );
  }
  if (isTerminal) show();
}

/** The remedy for a folder of the repository that this user cannot write; other errors are thrown. */
function explainFolder(error) {
  if (error.code === "ENOSPC") giveUp("The disk is full. Free some space and start again.");
  if (!["EACCES", "EPERM", "EROFS"].includes(error.code)) throw error;
  giveUp(
    `${root} cannot be written by this user (${error.code}). Clone Parley into a folder of your own, or change the owner of this one.`,
  );
}

/** pnpm prompts before it rebuilds node_modules, except with CI=true. */
function installEnvironment() {
  return { ...process.env, CI: "true" };
}

/** A Node that runs TypeScript: the current one, or the one in node_modules. */
function findNode() {
  if (Number(process.versions.node.split(".")[0]) >= WANTED_NODE) return process.execPath;
  const pinned = join(modules, `node-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(pinned)) return pinned;
  return giveUp(
    `Node ${WANTED_NODE} or newer is needed on ${process.platform}-${process.arch}; this is ${process.version}. Install it from https://nodejs.org.`,
  );
}

/** True if the terminal sends Ctrl-C to the whole process group, so that the script has already received it. */
function terminalSignalsAll() {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , group, , terminal, foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return terminal !== "0" && group === foreground;
  } catch {
    return process.stdin.isTTY || process.stderr.isTTY;
  }
}

function handOver(command, args) {
  const PATH = `${join(modules, ".bin")}${delimiter}${process.env.PATH ?? ""}`;
  // Node's compile cache is kept between runs: processes start faster and take less memory.
  const env = { NODE_COMPILE_CACHE: join(modules, ".cache", "node"), ...process.env, PATH };
  const child = spawn(command, args, { stdio: "inherit", env });
  child.once("error", (error) => giveUp(`${command} could not be started: ${error.message}`));
  // npm forwards Ctrl-C although the terminal has sent it to the whole group: forward it only where the terminal did not.
  process.on("SIGINT", () => {
    if (!terminalSignalsAll()) child.kill("SIGINT");
  });
  for (const signal of ["SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      child.kill(signal);
    });
  }
  // A signal to npm ends the shell between npm and this process, and the shell forwards nothing: a new parent means a stop request.
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
