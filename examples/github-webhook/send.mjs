// Sends a signed delivery as GitHub does: node send.mjs <address of the webhook>
import { createHmac, randomUUID } from "node:crypto";

const [address = "http://127.0.0.1:8787/hooks/github"] = process.argv.slice(2);
const secret = process.env.PARLEY_CHANNEL_HOOK_GITHUB;
if (!secret) throw new Error("set PARLEY_CHANNEL_HOOK_GITHUB to the secret of the webhook");

const body = JSON.stringify({
  action: "opened",
  issue: { number: 7, title: "The build fails", body: "Since yesterday.", html_url: "https://github.com/o/r/issues/7" },
  repository: { full_name: "o/r" },
  sender: { login: "ann" },
});
const response = await fetch(address, {
  method: "POST",
  headers: {
    "content-type": "application/json",
    "x-github-event": "issues",
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  },
  body,
});
console.log(response.status, await response.text());
process.exitCode = response.status === 202 ? 0 : 1;
