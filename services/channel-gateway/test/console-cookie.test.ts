// Which requests the cookie of the console authorizes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cookieCounts, cookieHeader, cookieName, cookieSecret } from "../src/http/console/cookie.ts";

const host = "127.0.0.1:8787";
const secret = "a".repeat(43);

describe("console cookie", () => {
  test("is read by the name of its port, and only when it is well formed", () => {
    assert.equal(cookieName(host), "parley_console_8787");
    assert.equal(cookieSecret({ host, cookie: `x=1; parley_console_8787=${secret}` }), secret);
    assert.equal(cookieSecret({ host, cookie: `parley_console_8788=${secret}` }), null);
    assert.equal(cookieSecret({ host, cookie: "parley_console_8787=short" }), null);
    assert.equal(cookieSecret({ host }), null);
  });

  test("is HttpOnly and SameSite=Strict, and Secure on https", () => {
    const plain = cookieHeader(secret, { host, origin: `http://${host}`, maxAgeSeconds: 60 });
    assert.match(plain, /; HttpOnly; SameSite=Strict$/);
    const secure = cookieHeader(secret, { host: "a.example", origin: "https://a.example", maxAgeSeconds: 60 });
    assert.match(secure, /^parley_console_default=.*; Secure$/);
  });

  test("counts for requests of the page itself", () => {
    const own = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" };
    assert.ok(cookieCounts("POST", own));
    assert.ok(cookieCounts("GET", { host, "sec-fetch-site": "same-origin" }));
    assert.ok(cookieCounts("GET", { host, "sec-fetch-site": "none" }));
    assert.ok(cookieCounts("GET", { host, origin: `http://${host}`, upgrade: "websocket" }));
  });

  test("does not count for other sites, other ports, or without an origin where it matters", () => {
    assert.ok(!cookieCounts("POST", { host }));
    assert.ok(!cookieCounts("POST", { host, origin: "http://127.0.0.1:3000", "sec-fetch-site": "same-site" }));
    assert.ok(!cookieCounts("GET", { host, "sec-fetch-site": "same-site" }));
    assert.ok(!cookieCounts("GET", { host, "sec-fetch-site": "cross-site" }));
    assert.ok(!cookieCounts("GET", { host, upgrade: "websocket" }));
    assert.ok(!cookieCounts("GET", { host, origin: "null", upgrade: "websocket" }));
  });
});
