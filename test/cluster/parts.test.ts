// The parts of the suite for clusters: command line, rewritten manifests, parsed output, scripts that run in pods.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { at } from "../deploy/support/manifests.ts";
import { read } from "../deploy/support/repository.ts";
import { serviceMark, signalScript } from "./cluster-target.ts";
import { forwardedPorts, Forwards } from "./forwards.ts";
import type { Kubectl } from "./kubectl.ts";
import { effectCounts } from "./load-cluster.ts";
import { deployed, linkMark, secretValue, type KubernetesObject } from "./objects.ts";
import { CannotRun, parseOptions } from "./options.ts";
import { checkVersion } from "./preflight.ts";
import { parseProbe, probeCommand } from "./reachability.ts";
import { describeWaiting, incomplete, missingImages, podsIn } from "./workloads.ts";

describe("the command line", () => {
  test("needs a context, and chooses a new namespace", () => {
    assert.throws(() => parseOptions([]), /^CannotRun: no context: name the cluster that may be changed/);
    const [one, other] = [parseOptions(["--context", "kind"]), parseOptions(["--context", "kind"])];
    assert.match(one.namespace, /^parley-test-[0-9a-f]{6}$/);
    assert.notEqual(one.namespace, other.namespace);
  });

  test("refuses what it does not know, and wrong values", () => {
    for (const [args, message] of [
      [["--everything"], /Unknown option '--everything'/],
      [["--phases", "reachability,party"], /no phase is called party; there are reachability, starts, scenes/],
      [["--scenes", "explode"], /no scene is called explode/],
      [["--rate", "none"], /--rate none: expected a number above 0/],
      [["--image", "store"], /--image store: expected NAME=IMAGE/],
      [["--namespace", "Not_One"], /Not_One is not a name of a namespace/],
      [["--public-address", "example.com"], /expected HOST:PORT/],
    ] as const)
      assert.throws(
        () => parseOptions(["--context", "kind", ...args]),
        (error) => {
          return error instanceof CannotRun && message.test(error.message);
        },
      );
  });

  test("accepts versions from 1.30 on, as servers write them", () => {
    const versions = (minor: string) =>
      JSON.stringify({ serverVersion: { major: "1", minor, gitVersion: `v1.${minor}` } });
    assert.equal(checkVersion(versions("30+")), "v1.30+");
    assert.throws(() => checkVersion(versions("29")), CannotRun);
  });
});

describe("the applied objects", () => {
  const namespace = parse(read("k8s/overlays/dev/namespace.yaml")) as object;
  const placed = (path: string): string =>
    read(path)
      .split(/^---$/m)
      .map((text) => JSON.stringify(withNamespace(parse(text) as KubernetesObject)))
      .join("\n---\n");
  const withNamespace = (object: KubernetesObject) => ({
    ...object,
    metadata: { ...object.metadata, namespace: "parley-dev" },
  });
  const rendered = [
    JSON.stringify(namespace),
    placed("k8s/base/tool-runner.yaml"),
    placed("k8s/overlays/dev/postgres.yaml"),
  ];
  const secrets = JSON.stringify({
    items: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "parley-store" },
        stringData: { "nats-url": "nats://nats:4222", "nats-seed": "S" },
      },
    ],
  });
  const objects = (images: ReadonlyMap<string, string> = new Map()) =>
    deployed(rendered.join("\n---\n"), secrets, { namespace: "own", images });
  const runner = ({ rest }: ReturnType<typeof objects>) => rest.find(({ kind }) => kind === "Deployment");

  test("are all in the new namespace, which keeps its labels", () => {
    const { namespace: own, rest, secrets: given } = objects();
    assert.deepEqual([own.metadata.name, at(own, "metadata", "labels")], ["own", at(namespace, "metadata", "labels")]);
    for (const { metadata } of [...rest, ...given]) assert.equal(metadata.namespace, "own");
  });

  test("are refused when one is in no namespace", () => {
    const clusterRole = JSON.stringify({ apiVersion: "v1", kind: "ClusterRole", metadata: { name: "x" } });
    assert.throws(
      () => deployed([...rendered, clusterRole].join("\n---\n"), secrets, { namespace: "own", images: new Map() }),
      /ClusterRole x is in no namespace/,
    );
  });

  test("connect services to NATS by a container that scenes can stop, restricted as the service", () => {
    const pod = at(runner(objects()), "spec", "template", "spec");
    assert.equal(at(pod, "shareProcessNamespace"), true);
    const link = at(pod, "initContainers", 1);
    assert.equal(at(link, "restartPolicy"), "Always");
    assert.ok(JSON.stringify(at(link, "command")).includes(linkMark));
    assert.deepEqual(at(link, "securityContext"), at(pod, "containers", 0, "securityContext"));
    assert.equal(secretValue(objects().secrets, "parley-store", "nats-url"), "nats://127.0.0.1:4222");
    assert.equal(secretValue(objects().secrets, "parley-store", "nats-seed"), "S");
  });

  test("record the time of commits, which the invariants need", () => {
    const postgres = objects().rest.find(({ kind }) => kind === "StatefulSet");
    assert.deepEqual(at(postgres, "spec", "template", "spec", "containers", 0, "args"), [
      "-c",
      "track_commit_timestamp=on",
    ]);
  });

  test("have the images of the caller, whose names must be those of the manifests", () => {
    const images = new Map([["parley/tool-runner", "registry:5000/runner@sha256:0"]]);
    const pod = at(runner(objects(images)), "spec", "template", "spec");
    for (const path of [
      ["containers", 0],
      ["initContainers", 0],
      ["initContainers", 1],
    ] as const)
      assert.equal(at(pod, ...path, "image"), "registry:5000/runner@sha256:0");
    assert.throws(
      () => objects(new Map([["parley/typo", "x"]])),
      /no container of k8s\/overlays\/dev has the image parley\/typo/,
    );
  });
});

describe("the state of the namespace", () => {
  const pod = (status: object, metadata: object = {}) => ({
    metadata: { name: "store-1", labels: { "app.kubernetes.io/name": "store" }, ...metadata },
    spec: { containers: [{ name: "store", image: "parley/store:0.1.0" }] },
    status,
  });
  const container = (state: object) => ({
    name: "store",
    image: "parley/store:0.1.0",
    ready: false,
    restartCount: 2,
    state,
  });

  test("says why a pod is not scheduled or does not start", () => {
    const conditions = [{ type: "PodScheduled", status: "False", message: "0/1 nodes are available" }];
    const waiting = { reason: "ImagePullBackOff", message: "Back-off pulling image" };
    const pods = podsIn(
      JSON.stringify({
        items: [
          pod({ phase: "Pending", conditions }),
          pod({ phase: "Pending", containerStatuses: [container({ waiting })] }),
          pod({ phase: "Running", containerStatuses: [container({ running: {} })] }),
        ],
      }),
    );
    assert.deepEqual(describeWaiting(pods), [
      "store-1: Unschedulable: 0/1 nodes are available",
      "store-1: ImagePullBackOff: Back-off pulling image (2 restarts)",
      "store-1: runs and is not ready (2 restarts)",
    ]);
    assert.match(
      missingImages(pods) ?? "",
      /cannot pull them: parley\/store:0\.1\.0\. Load them \(kind: kind load docker-image parley\//,
    );
    assert.equal(missingImages(pods.slice(0, 1)), undefined);
  });

  test("is complete when every replica is ready and updated, the former ones are gone, and Jobs have ended", () => {
    const deployment = (status: object, generation = 2) => ({
      kind: "Deployment",
      metadata: { name: "store", generation },
      spec: { replicas: 2 },
      status,
    });
    const ready = { observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2 };
    const rest = (...items: object[]) => incomplete(JSON.stringify({ items }));
    assert.deepEqual(rest(deployment(ready)), []);
    assert.deepEqual(rest(deployment({ ...ready, replicas: 3, updatedReplicas: 1 })), [
      "deployment store: 2 of 2 ready, 1 updated, 3 there",
    ]);
    assert.deepEqual(rest(deployment(ready, 3)), ["deployment store: not seen yet"]);
    assert.deepEqual(rest({ kind: "Job", metadata: { name: "migrate" }, spec: {} }), ["job migrate: not complete"]);
  });

  test("has the effects of commands by their files, and forwarded ports by those of the pod", () => {
    assert.deepEqual(
      effectCounts("/workspace/effects/load-1-0a:1\n/workspace/effects/load-2-0b:2\n"),
      new Map([
        ["load-1-0a", 1],
        ["load-2-0b", 2],
      ]),
    );
    const output = "Forwarding from 127.0.0.1:40001 -> 8787\nForwarding from 127.0.0.1:40002 -> 8080\n";
    assert.deepEqual(
      forwardedPorts(output),
      new Map([
        [8787, 40_001],
        [8080, 40_002],
      ]),
    );
  });
});

describe("what runs in pods", () => {
  for (const prober of ["node", "bash"] as const) {
    test(`tells an address that listens from one that does not: ${prober}`, async () => {
      const server = createServer((socket) => socket.destroy());
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const targets = [
        { host: "127.0.0.1", port },
        { host: "127.0.0.1", port: 1 },
        { host: "$PROBED_HOST", port },
      ];
      const [program = "", ...args] = probeCommand(prober, targets);
      const child = spawn(program, args, { env: { ...process.env, PROBED_HOST: "127.0.0.1" } });
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      await once(child, "close");
      server.close();
      assert.deepEqual(parseProbe(output, targets.length), [true, false, true]);
    });
  }

  test("counts an attempt without a result as a failure of the check, not as a refused connection", () => {
    assert.throws(() => parseProbe("0 yes\nnc: not found\n", 2), /did not report attempt 1 of 2/);
  });

  test("kills the program that the images start", () => {
    const commands = [...read("Dockerfile").matchAll(/^CMD (\[.*main\.js.*\])$/gm)].map(([, command = ""]) => command);
    assert.ok(commands.length > 0);
    for (const command of commands) assert.ok(command.includes(serviceMark), command);
  });

  test("stops and continues exactly the processes with the mark, and fails when there is none", async () => {
    const mark = `mark-${process.pid}.js`;
    const child = spawn(process.execPath, [
      "--eval",
      `process.stdout.write("here"); setInterval(() => {}, 1e9) // ${mark}`,
    ]);
    await once(child.stdout, "data");
    const state = () => /^State:\t(\w)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
    const run = (name: "STOP" | "CONT" | "KILL", of = mark) => execFileSync("sh", ["-c", signalScript(name, of)]);
    run("STOP");
    assert.equal(state(), "T");
    run("CONT");
    assert.notEqual(state(), "T");
    run("KILL");
    const [, signal] = (await once(child, "exit")) as [number | null, string];
    assert.equal(signal, "SIGKILL");
    assert.throws(() => run("KILL"), /Command failed/);
  });

  test("keeps a forward to each pod as long as it is wanted, and opens an ended one again", async () => {
    const started: string[] = [];
    const kubectl: Kubectl = {
      run: () => Promise.reject(new Error("not used")),
      start(args) {
        started.push(args[1] ?? "");
        return spawn(process.execPath, [
          "--eval",
          `console.log("Forwarding from 127.0.0.1:7 -> 80"); setInterval(() => {}, 1e9)`,
        ]);
      },
    };
    const forwards = new Forwards(kubectl, [80]);
    await forwards.follow(["a", "b"]);
    assert.deepEqual([...forwards.current().keys()].sort(), ["a", "b"]);
    const ended = forwards.current().get("b");
    await ended?.close();
    await forwards.follow(["b"]);
    assert.deepEqual([...forwards.current().keys()], ["b"]);
    assert.deepEqual(started, ["pod/a", "pod/b", "pod/b"]);
    await forwards.close();
    assert.equal(forwards.current().size, 0);
  });
});
