// What stands behind the wall for a command that may reach hosts: a small program of Node between 127.0.0.1 and the proxy's socket, and the
// variables that programs find it by. The program decides nothing: who goes around it reaches the same proxy.

/** Where things are inside. */
const insideFolder = "/run/parley";
const nodeInside = `${insideFolder}/node`;
const socketInside = `${insideFolder}/proxy.sock`;
/** The command's network is its own: nobody else has the port. */
const port = 3128;

/** Closing its output says that it is ready; something else takes the number, that no connection may have. It outlives what the command's group is told: the command may still have something to send. */
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
 * A shell script that starts the program and, once it listens, becomes the command in its arguments. Its own shell has gone by then: the
 * command is nobody's parent.
 */
const begin = ['up=$("$0" --max-old-space-size=64 -e "$1" </dev/null 2>/dev/null &)', "shift", 'exec "$@"'].join("\n");

/** For bubblewrap's command line. `node`: the program of this service. */
export function egressBinds(node: string, socket: string): string[] {
  return ["--ro-bind", node, nodeInside, "--ro-bind", socket, socketInside];
}

/** Before the command behind the wall. */
export function egressArguments(): string[] {
  return ["/bin/sh", "-c", begin, nodeInside, forwarder];
}

/** How programs find it; Node's own fetch asks for the last. */
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

/** A shell line that says `no way out` where the program cannot be reached. */
export const egressTrial = `${nodeInside} -e 'require("node:net").connect(${port}, "127.0.0.1", () => process.exit())' || echo no way out`;
