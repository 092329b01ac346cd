// The ten steps of docs/deploy.md: those that need no cluster run as they are in the page, the others are compared with the files that
// they name.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, cpSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { services } from "@parley/contracts";
import { Cleanup, startTestCluster, temporaryFolder } from "@parley/testing";
import { z } from "zod";

import { kubernetesTools } from "./support/kubernetes-tools.ts";
import { manifestsIn } from "./support/manifests.ts";
import { read, root, version } from "./support/repository.ts";

interface Step {
  /** The commands of the step with the output that the page shows, in order. */
  commands: { command: string; output: string[] }[];
}

const section = /^### From an empty cluster to an answer$([\s\S]*?)^### /m.exec(read("docs/deploy.md"))?.[1] ?? "";
const steps: Step[] = section
  .split(/^\d+\. /m)
  .slice(1)
  .map((text) => ({
    commands: [...text.matchAll(/```sh\n([\s\S]*?)```\s+```text\n([\s\S]*?)```/g)].map(([, command, output]) => ({
      command: unindented(command),
      output: unindented(output).trim().split("\n"),
    })),
  }));

function unindented(text = ""): string {
  return text.replaceAll(/^ {3,4}/gm, "");
}

function commandOf(step: number, number = 1): Step["commands"][number] {
  const found = steps[step - 1]?.commands[number - 1];
  assert.ok(found, `step ${step} has no command ${number}`);
  return found;
}

test("has ten numbered steps, each with a command and what it prints", () => {
  assert.deepEqual(
    [...section.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number)),
    Array.from({ length: 10 }, (_, index) => index + 1),
  );
  for (const [index, { commands }] of steps.entries()) assert.ok(commands.length > 0, `step ${index + 1}`);
});

describe("the steps that need an engine or a cluster", () => {
  const targets = new Set([...read("Dockerfile").matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name]) => name));
  const dev = manifestsIn("k8s/overlays/dev");
  const namespace = dev.find(({ kind }) => kind === "Namespace")?.metadata.name;

  test("build and load every image that the manifests name", () => {
    for (const step of [1, 2]) {
      const { command } = commandOf(step);
      const names = /for name in (.+?);/.exec(command)?.[1]?.split(" ") ?? [];
      for (const name of names) assert.ok(targets.has(name), name);
      assert.deepEqual(names.map((name) => `parley/${name}:${version}`).sort(), imagesOfBase());
      assert.match(command, new RegExp(`parley/\\$name:${version.replaceAll(".", "\\.")}`));
    }
  });

  test("wait for the migration and the services in the namespace of the overlay", () => {
    const job = manifestsIn("k8s/base").find(({ kind }) => kind === "Job")?.metadata.name;
    assert.match(
      commandOf(8).command,
      new RegExp(`^kubectl -n ${namespace} wait --for=condition=complete job/${job} `),
    );
    assert.deepEqual(commandOf(8).output, [`job.batch/${job} condition met`]);
    const { command, output } = commandOf(9);
    assert.match(command, new RegExp(`kubectl -n ${namespace} rollout status deployment/\\$name`));
    const names = /for name in (.+?);/.exec(command)?.[1]?.split(" ") ?? [];
    assert.deepEqual(names.toSorted(), services.toSorted());
    assert.deepEqual(
      output,
      names.map((name) => `deployment "${name}" successfully rolled out`),
    );
  });

  test("forward a port to the one that the Service has", () => {
    const { command } = commandOf(10);
    const service = manifestsIn("k8s/base").find(({ kind }) => kind === "Service");
    const { ports } = z.object({ ports: z.array(z.object({ port: z.number() })) }).parse(service?.spec);
    assert.equal(
      command.trim(),
      `kubectl -n ${namespace} port-forward service/${service?.metadata.name} 8787:${ports[0]?.port}`,
    );
    assert.match(read("docs/deploy.md"), /Check the version of the cluster: 1\.30 or newer/);
  });
});

function imagesOfBase(): string[] {
  const text = ["store", "migrate", "agent-core", "tool-runner", "channel-gateway"]
    .map((name) => read(`k8s/base/${name}.yaml`))
    .join("\n");
  return [...new Set([...text.matchAll(/image: (\S+)/g)].map(([, image]) => image ?? ""))].sort();
}

const tools = await kubernetesTools();

describe("the steps without a cluster", { skip: tools === undefined ? "kubectl is not available" : false }, () => {
  const cleanup = new Cleanup();
  let folder = "";

  before(async () => {
    folder = await temporaryFolder(cleanup);
    for (const part of ["k8s", "infra/nats", "infra/postgres", "infra/redis"])
      cpSync(join(root, part), join(folder, part), { recursive: true });
    // What `apply` would send is decoded and named by kubectl itself; only the answer of a server is missing.
    const offline = `#!/bin/sh
set -e
real="${tools?.kubectl}"
case "$1 $2" in
  "kustomize "*) exec "$real" "$@" ;;
  "apply -k") "$real" kustomize "$3" | "$real" annotate --local -f - -o name test/step=1 | sed 's/$/ created/' ;;
  "apply -f") "$real" annotate --local -f "$3" -o name test/step=1 | sed 's/$/ created/' ;;
  *) echo "kubectl $*: needs a cluster" >&2; exit 1 ;;
esac
`;
    writeFileSync(join(folder, "kubectl"), offline);
    chmodSync(join(folder, "kubectl"), 0o755);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  /** The lines that a command of the page prints. */
  const run = (command: string): string[] => {
    const env = { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, KUBECONFIG: "/dev/null" };
    return execFileSync("bash", ["-e", "-o", "pipefail", "-c", command], { cwd: folder, env, encoding: "utf8" })
      .trim()
      .split("\n");
  };

  for (const step of [4, 5, 6, 7]) {
    test(`print what the page shows: step ${step}`, () => {
      const { command, output } = commandOf(step);
      assert.deepEqual(run(command), output);
    });
  }

  test("keep the token in a file that only its owner may read", () => {
    const path = join(folder, ".env.parley-dev");
    assert.match(readFileSync(path, "utf8"), /^PARLEY_TOKEN=\S+\nNATS_OPERATOR_SEED=\S+$/m);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.match(read(".gitignore"), /^\.env\.parley-dev$/m);
  });

  test("end with the answer that the page shows", async () => {
    const cluster = await startTestCluster(cleanup, { processes: [] });
    writeFileSync(join(folder, ".env.parley-dev"), `PARLEY_TOKEN=${cluster.token}\n`);
    const { command, output } = commandOf(10, 2);
    // Not synchronous: the services run in this process.
    const { stdout } = await promisify(execFile)(
      "bash",
      ["-e", "-o", "pipefail", "-c", command.replace("http://127.0.0.1:8787", cluster.httpUrl)],
      { cwd: folder },
    );
    assert.deepEqual(stdout.trim().split("\n"), output);
  });
});
