// The sandbox side of egress: a small Node program that forwards 127.0.0.1 to the proxy's socket, and the proxy variables.
// The program decides nothing: a command that bypasses it reaches the same proxy.

/** Paths inside the sandbox. */
const insideFolder = "/run/parley";
const nodeInside = `${insideFolder}/node`;
const socketInside = `${insideFolder}/proxy.sock`;
/** Free in the command's own network namespace. */
const port = 3128;

/** Closing standard output signals readiness; /dev/null then takes descriptor 1, so that no connection gets it. It ignores signals to the group: the command may still have data to send. */
const forwarder = `
const { closeSync, openSync } = require("node:fs");
const { connect, createServer } = require("node:net");
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => {});
createServer({ allowHalfOpen: true }, (inner) => {
  const outer = connect({ path: "${socketInside}", allowHalfOpen: true });
  inner.on("error", () => outer.destroy());
  outer.on("error", () => inner.destroy());
  inner.on("close", () => outer.destroy());
  outer.on("close", () => inner.destroy());
  inner.pipe(outer);
  outer.pipe(inner);
}).listen(${port}, "127.0.0.1", () => {
  closeSync(1);
  openSync("/dev/null", "w");
});
`;

/**
 * A shell script that starts the program and, once it listens, becomes the command in its arguments. Its own shell has ended by
 * then, so the program is not a child of the command.
 */
const begin = ['up=$("$0" --max-old-space-size=64 -e "$1" </dev/null 2>/dev/null &)', "shift", 'exec "$@"'].join("\n");

/** Arguments for bubblewrap. `node` is the path of this service's Node binary. */
export function egressBinds(node: string, socket: string): string[] {
  return ["--ro-bind", node, nodeInside, "--ro-bind", socket, socketInside];
}

/** Arguments placed before the command inside the sandbox. */
export function egressArguments(): string[] {
  return ["/bin/sh", "-c", begin, nodeInside, forwarder];
}

/** The proxy variables; Node's fetch needs the last one. */
export function egressEnvironment(): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  const none = "localhost,127.0.0.1,::1";
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    http_proxy: proxy,
    https_proxy: proxy,
    NO_PROXY: none,
    no_proxy: none,
    NODE_USE_ENV_PROXY: "1",
  };
}

/** A shell line that prints `no egress` when the program cannot be reached. */
export const egressTrial = `${nodeInside} -e 'require("node:net").connect(${port}, "127.0.0.1", () => process.exit())' || echo no egress`;
