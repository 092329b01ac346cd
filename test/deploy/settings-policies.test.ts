// The network policies for the servers that a parley.toml names.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseSettings } from "@parley/chassis";
import { parseAllDocuments } from "yaml";

import { openings, settingsPolicies, type Opening } from "../../infra/network/settings-policies.ts";
import { at } from "./support/manifests.ts";

const settings = parseSettings(
  `
[channels.irc.net]
host = "irc.example.com"
port = 6667
nick = "parley"
[channels.email.me]
consent = true
address = "a@example.com"
authserv_id = "mx.example.com"
imap_host = "imap.example.com"
smtp_host = "10.1.2.3"
smtp_port = 2525
password_env = "PARLEY_CHANNEL_MAIL"
[channels.signal.me]
number = "+4915100000000"
daemon_url = "http://signal.chat.svc:8080"
[memory.embedder]
url = "http://embed.internal:9000/v1"
model = "x"
[llm.own]
base_url = "http://127.0.0.1:11434/v1"
[mcp.servers.tracker]
url = "https://mcp.example.com/mcp"
`,
  "parley.toml",
);

const found = openings(settings);
const policiesOf = (list: readonly Opening[], hasWeb = false) =>
  parseAllDocuments(settingsPolicies(list, hasWeb).text)
    .map((document) => document.toJS() as unknown)
    .filter((each) => each !== null);

test("finds every server that the settings name, with the service that connects to it", () => {
  const names = found.map(({ from, host, port }) => `${from} ${host}:${port}`);
  for (const expected of [
    "channel-gateway irc.example.com:6667",
    "channel-gateway imap.example.com:993",
    "channel-gateway 10.1.2.3:2525",
    "channel-gateway signal.chat.svc:8080",
    "agent-core embed.internal:9000",
    "tool-runner mcp.example.com:443",
  ])
    assert.ok(names.includes(expected), `${expected} is not among ${names.join(", ")}`);
  assert.ok(names.every((name) => !name.includes("127.0.0.1")));
});

test("writes a policy for what those of the base do not allow", () => {
  const policies = new Map(
    policiesOf(found).map((each) => [
      at(each, "metadata", "name"),
      [at(each, "spec", "egress", 0, "to", 0), at(each, "spec", "egress", 0, "ports", 0, "port")],
    ]),
  );
  const anywhere = policies.get("channel-gateway-to-channels-irc-net-host")?.[0];
  assert.equal(at(anywhere, "ipBlock", "cidr"), "0.0.0.0/0");
  assert.ok(JSON.stringify(anywhere).includes("169.254.0.0/16"));
  assert.deepEqual(policies.get("channel-gateway-to-channels-email-me-smtp-host"), [
    { ipBlock: { cidr: "10.1.2.3/32" } },
    2525,
  ]);
  assert.deepEqual(policies.get("channel-gateway-to-channels-signal-me-daemon-url"), [
    { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "chat" } } },
    8080,
  ]);
  assert.ok(policies.has("tool-runner-to-mcp-servers-tracker-url"));
  assert.ok(
    [...policies.keys()].every((name) => !String(name).includes("imap")),
    "port 993 is allowed already",
  );
});

test("writes none for the public addresses that the component web allows", () => {
  const names = policiesOf(found, true).map((each) => String(at(each, "metadata", "name")));
  assert.ok(!names.includes("tool-runner-to-mcp-servers-tracker-url"));
});

test("names the servers whose address only their operator knows", () => {
  assert.deepEqual(
    settingsPolicies(found, false).unknown.map(({ setting }) => setting),
    ["memory.embedder.url"],
  );
});
