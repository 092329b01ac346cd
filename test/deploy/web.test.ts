// The tool-runner's optional access to the internet: which addresses it reaches, and that commands do not get it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { BlockList, isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";

import ipaddr from "ipaddr.js";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";

import { chooseIsolation, isolationSettings } from "../../services/tool-runner/src/sandbox/isolation.ts";
import { controlPlanes, reservedRange } from "../../services/tool-runner/src/network/ip-address.ts";
import { kubernetesTools } from "./support/kubernetes-tools.ts";
import { at, parseFile } from "./support/manifests.ts";
import { read, root, variablesOf } from "./support/repository.ts";

const Setting = z.enum(isolationSettings);
const folder = "k8s/components/web";

test("connects only the tool-runner to a separate external network with Compose", () => {
  const Override = z.strictObject({
    services: z.strictObject({
      "tool-runner": z.strictObject({ environment: z.record(z.string(), z.string()), networks: z.array(z.string()) }),
    }),
    networks: z.strictObject({ web: z.null() }),
  });
  const runner = Override.parse(parse(read("infra/docker/web.yml"))).services["tool-runner"];
  assert.deepEqual(runner.networks, ["web"]);
  assert.doesNotMatch(read("docker-compose.yml"), /\bweb\b/);
  assert.ok(Object.keys(runner.environment).every((variable) => variablesOf("tool-runner").includes(variable)));
  assert.equal(runner.environment["PARLEY_INTERNET"], "true");
  const isolation = /^\$\{PARLEY_WEB_EXEC_ISOLATION:-(\w+)\}$/.exec(runner.environment["PARLEY_EXEC_ISOLATION"] ?? "");
  noWayForCommands(Setting.parse(isolation?.[1]));
});

test("denies commands of exec the component's network on Kubernetes", () => {
  const [patch] = parseFile(`${folder}/tool-runner.yaml`);
  assert.equal(at(patch, "metadata", "name"), "tool-runner");
  const set = z
    .array(z.strictObject({ name: z.string(), value: z.string() }))
    .parse(at(patch, "spec", "template", "spec", "containers", 0, "env"));
  assert.ok(set.every(({ name }) => variablesOf("tool-runner").includes(name)));
  const value = (wanted: string) => set.find(({ name }) => name === wanted)?.value;
  assert.equal(value("PARLEY_INTERNET"), "true");
  noWayForCommands(Setting.parse(value("PARLEY_EXEC_ISOLATION")));
});

/** With bubblewrap, commands have a separate network; without it they do not run. */
function noWayForCommands(setting: z.infer<typeof Setting>): void {
  const works = { works: true, bwrap: "bwrap", disableUserNamespaces: true } as const;
  for (const gvisor of [false, true]) {
    const environment = { gvisor, internet: true };
    assert.equal(chooseIsolation(setting, { ...environment, probe: works }).kind, "bubblewrap");
    const without = { works: false, reason: "it may not" } as const;
    assert.equal(chooseIsolation(setting, { ...environment, probe: without }).kind, "refused");
  }
}

const [policy] = parseFile(`${folder}/network-policy.yaml`);
const Rules = z.tuple([
  z.strictObject({
    to: z.array(z.strictObject({ ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()) }) })),
    ports: z.array(z.strictObject({ protocol: z.literal("TCP"), port: z.number() })),
  }),
]);
const [rule] = Rules.parse(at(policy, "spec", "egress"));
type Blocks = { cidr: string; except: string[] }[];
const blocksOf = (manifest: unknown): Blocks =>
  Rules.parse(at(manifest, "spec", "egress"))[0].to.map(({ ipBlock }) => ipBlock);
/** Every policy that allows public addresses. */
const publicPolicies = [policy, ...parseFile("k8s/base/network-policies.yaml")].filter(
  (each) => at(each, "spec", "egress", 0, "to", 0, "ipBlock") !== undefined,
);

test("selects the tool-runner and allows HTTP and HTTPS in the policy", () => {
  assert.deepEqual(at(policy, "spec", "podSelector", "matchLabels"), { "app.kubernetes.io/name": "tool-runner" });
  assert.deepEqual(at(policy, "spec", "policyTypes"), ["Egress"]);
  assert.deepEqual(
    rule.ports.map(({ port }) => port),
    [80, 443],
  );
});

test("allows in every policy exactly the public addresses that web_fetch connects to", () => {
  assert.deepEqual(publicPolicies.map((each) => String(at(each, "metadata", "name"))).sort(), [
    "agent-core-to-model",
    "channel-gateway-to-channels",
    "tool-runner-to-web",
  ]);
  for (const each of publicPolicies) allowsPublicAddresses(blocksOf(each));
});

function allowsPublicAddresses(blocks: Blocks): void {
  const passes = (address: string): boolean =>
    blocks.some(({ cidr, except }) => isIn(address, [cidr]) && !isIn(address, except));
  const special = [ipaddr.IPv4.prototype, ipaddr.IPv6.prototype].flatMap(specialRanges);
  assert.ok(special.length > 30);
  const ranges = [...blocks.flatMap(({ cidr, except }) => [cidr, ...except]), ...special, ...controlPlanes];
  // Both sides consist of these ranges: when they agree at all borders, they agree everywhere.
  const borders = new Set(ranges.flatMap(bordersOf));
  for (const address of borders) {
    assert.equal(
      passes(address),
      reservedRange(address) === undefined,
      `${address}: ${reservedRange(address) ?? "public"}`,
    );
  }
  for (const metadata of ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"]) {
    assert.equal(passes(metadata), false, metadata);
  }
  assert.equal(passes("1.1.1.1") && passes("2606:4700:4700::1111"), true);
}

/** The ranges that the library knows by name, as `address/bits`. */
function specialRanges(prototype: object): string[] {
  const named = z.record(z.string(), z.array(z.unknown())).parse(Reflect.get(prototype, "SpecialRanges"));
  return Object.values(named)
    .flatMap((value) => (Array.isArray(value[0]) ? value : [value]))
    .map((value) => z.tuple([z.union([z.instanceof(ipaddr.IPv4), z.instanceof(ipaddr.IPv6)]), z.number()]).parse(value))
    .map(([address, bits]) => `${address.toString()}/${bits}`);
}

/** The first and the last address of a range, and their neighbours. */
function bordersOf(range: string): string[] {
  const [address, bits] = range.includes("/") ? ipaddr.parseCIDR(range) : [ipaddr.parse(range), undefined];
  const bytes = address.toByteArray();
  const width = BigInt(bytes.length * 8);
  const size = 1n << (width - BigInt(bits ?? Number(width)));
  const first = (bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n) / size) * size;
  return [first - 1n, first, first + size - 1n, first + size]
    .filter((number) => number >= 0n && number < 1n << width)
    .map((number) => textOf(number, bytes.length));
}

function textOf(number: bigint, length: number): string {
  const bytes = Array.from({ length }, (_, index) => Number((number >> BigInt(8 * (length - 1 - index))) & 255n));
  return ipaddr.fromByteArray(bytes).toString();
}

/** Uses the rules of Node.js's own library, as an independent check. */
function isIn(address: string, ranges: readonly string[]): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = "", bits] = range.split("/");
    list.addSubnet(network, Number(bits), isIPv6(network) ? "ipv6" : "ipv4");
  }
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

const tools = await kubernetesTools();

test(
  "renders both overlays with the component, also with gVisor",
  { skip: tools === undefined ? "kubectl is not available" : false },
  () => {
    const scratch = mkdtempSync(join(tmpdir(), "parley-web-"));
    try {
      for (const overlay of ["dev", "prod"]) {
        const [resource, web, gvisor] = [`k8s/overlays/${overlay}`, folder, "k8s/components/gvisor"].map((path) =>
          relative(scratch, join(root, path)),
        );
        writeFileSync(
          join(scratch, "kustomization.yaml"),
          JSON.stringify({ resources: [resource], components: [web, gvisor] }),
        );
        const rendered = execFileSync(tools?.kubectl ?? "", ["kustomize", scratch], {
          encoding: "utf8",
          maxBuffer: 64e6,
        });
        const objects = parseAllDocuments(rendered).map((document) => document.toJS() as unknown);
        const runner = objects.find(
          (each) => at(each, "kind") === "Deployment" && at(each, "metadata", "name") === "tool-runner",
        );
        const env = z
          .array(z.looseObject({ name: z.string(), value: z.string().optional() }))
          .parse(at(runner, "spec", "template", "spec", "containers", 0, "env"));
        const isolation = env.filter(({ name }) => name === "PARLEY_EXEC_ISOLATION").map(({ value }) => value);
        assert.deepEqual(isolation, ["auto"], overlay);
        assert.ok(objects.some((each) => at(each, "metadata", "name") === "tool-runner-to-web"));
      }
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  },
);
