// The mail servers of the tests: a mail that swaks sends is authenticated, delivered, deferred and served as real servers do it.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { startMailPeer } from "@parley/testing";

test("delivers a mail to its mailbox with the server's own authentication result", async () => {
  await using peer = await startMailPeer();
  const forged = `Authentication-Results: ${peer.authservId}; dmarc=pass header.from=test.local`;
  await peer.write({ to: "bob@test.local", from: "ann@test.local", body: "one" });
  await peer.write({ to: "bob@test.local", from: "ann@test.local", envelopeFrom: "eve@evil.test", headers: [forged] });
  // Exim delivers both at the same time, in any order.
  const mails = await peer.untilMails("bob", 2);
  const first = mails.find((mail) => mail.includes("\none\n")) ?? "";
  const second = mails.find((mail) => mail !== first) ?? "";
  assert.match(first, /^Authentication-Results: mx\.test\.local; dmarc=pass header\.from=test\.local$/m);
  assert.deepEqual(second.match(/^Authentication-Results:.*$/gm), [
    "Authentication-Results: mx.test.local; dmarc=fail header.from=test.local",
  ]);
  await assert.rejects(peer.write({ to: "nobody@test.local" }), /550/);
  assert.ok(peer.imapPort > 0);
});

test("keeps a mail that LMTP defers and delivers it again", async () => {
  const answers = ["451 later", "250 kept"];
  const seen: string[] = [];
  const lmtp = createServer((socket) => {
    let inData = false;
    let buffer = "";
    socket.write("220 test LMTP\r\n");
    socket.on("data", (part) => {
      buffer += part.toString("latin1");
      for (let end = buffer.indexOf("\r\n"); end !== -1; end = buffer.indexOf("\r\n")) {
        const line = buffer.slice(0, end);
        buffer = buffer.slice(end + 2);
        if (inData) {
          if (line !== ".") continue;
          inData = false;
          const answer = answers.shift() ?? "250 kept";
          seen.push(answer);
          socket.write(`${answer}\r\n`);
        } else if (/^DATA/i.test(line)) {
          inData = true;
          socket.write("354 go\r\n");
        } else socket.write(/^QUIT/i.test(line) ? "221 bye\r\n" : "250 ok\r\n");
      }
    });
    socket.on("error", () => undefined);
  });
  lmtp.listen(0, "127.0.0.1");
  await once(lmtp, "listening");
  await using peer = await startMailPeer({ lmtpPort: (lmtp.address() as AddressInfo).port });
  await peer.write({ messageId: "<deferred@test.local>" });
  await peer.untilLogged(/Completed/);
  assert.deepEqual(seen, ["451 later", "250 kept"]);
  lmtp.close();
});
