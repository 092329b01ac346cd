// A real Alertmanager from its Debian package, unpacked in a folder of its own and run in bubblewrap, on a free loopback port, with one receiver.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";
import { freePort, sharedCacheDir, suitePackages, suitePrograms, type SuitePrograms } from "@parley/local";

export interface AlertmanagerOptions {
  /** The address that receives notifications. */
  url: string;
  /** Sent as `Authorization: Bearer`. */
  secret: string;
}

export interface Alertmanager extends AsyncDisposable {
  /** Fires an alert, or resolves it with `endsAt` in the past. */
  alert(alert: {
    labels: Record<string, string>;
    annotations?: Record<string, string>;
    startsAt?: string;
    endsAt?: string;
  }): Promise<void>;
}

/** Why Alertmanager cannot run here, naming the peer; false when it can. The first call downloads it. */
export async function missingAlertmanager(): Promise<string | false> {
  try {
    await programs();
    return false;
  } catch (error) {
    return `Alertmanager (Debian trixie) is not available: ${errorMessage(error)}`;
  }
}

function programs(): Promise<SuitePrograms> {
  const { alertmanager } = suitePackages;
  return suitePrograms({ name: "alertmanager", ...alertmanager, cacheDir: sharedCacheDir });
}

/** Notifies after a second, without the other members of a cluster. */
export async function startAlertmanager({ url, secret }: AlertmanagerOptions): Promise<Alertmanager> {
  const unpacked = await programs();
  const home = realpathSync(mkdtempSync(join(tmpdir(), "parley-alertmanager-")));
  const port = await freePort();
  const config = {
    route: {
      receiver: "parley",
      group_by: ["alertname"],
      group_wait: "1ms",
      group_interval: "1s",
      repeat_interval: "1h",
    },
    receivers: [
      {
        name: "parley",
        webhook_configs: [{ url, send_resolved: true, http_config: { authorization: { credentials: secret } } }],
      },
    ],
  };
  // JSON is YAML.
  writeFileSync(join(home, "alertmanager.yml"), JSON.stringify(config));
  const options = [
    `--config.file=${join(home, "alertmanager.yml")}`,
    `--storage.path=${home}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--cluster.listen-address=",
  ];
  const [command, args] = unpacked.command("/usr/bin/prometheus-alertmanager", options, { writable: [home] });
  const child = spawn(command, args, { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (output += part.toString()));
  const root = `http://127.0.0.1:${port}`;
  const until = performance.now() + 60_000;
  while (!(await isReady(root))) {
    if (child.exitCode !== null || performance.now() > until) {
      child.kill("SIGKILL");
      throw new Error(`Alertmanager did not start:\n${output.slice(-2_000)}`);
    }
    await delay(20);
  }
  return {
    async alert(alert) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${root}/api/v2/alerts`, { method: "POST", headers, body: JSON.stringify([alert]) });
      if (!response.ok) throw new Error(`Alertmanager refused the alert: ${await response.text()}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function isReady(root: string): Promise<boolean> {
  return fetch(`${root}/-/ready`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}
