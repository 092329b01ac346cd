// The check of an authorization server against the configured issuer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { issuerProblem, namesIssuer } from "../../src/mcp/oauth/provider.ts";

/** Discovery state from a URL whose metadata contain this issuer. */
const found = (asked: string, issuer: string) => ({
  authorizationServerUrl: asked,
  authorizationServerMetadata: {
    issuer,
    authorization_endpoint: `${asked}/authorize`,
    token_endpoint: `${asked}/token`,
    response_types_supported: ["code"],
  },
});

test("accepts metadata from the origin of the configured issuer", () => {
  const issuer = "https://as.example/oauth";
  assert.equal(issuerProblem(issuer, found("https://as.example/oauth/", issuer)), undefined);
  assert.equal(issuerProblem(issuer, found("https://as.example/", `${issuer}/`)), undefined);
  assert.equal(issuerProblem("https://as.example", { authorizationServerUrl: "https://as.example/" }), undefined);
});

test("rejects the issuer's name from another origin, and other issuers", () => {
  const issuer = "https://as.example/oauth";
  assert.match(
    issuerProblem(issuer, found("https://evil.example/", issuer)) ?? "",
    /queried at https:\/\/evil\.example/,
  );
  assert.match(issuerProblem(issuer, found("http://as.example/", issuer)) ?? "", /queried at http:/);
  assert.match(
    issuerProblem(issuer, found("https://as.example/", "https://as.example/other")) ?? "",
    /in the settings is https/,
  );
});

test("keeps the library's own issuer check when no issuer is configured", () => {
  assert.equal(namesIssuer({ grant: "authorization_code", issuer: undefined }), false);
  assert.equal(namesIssuer({ grant: "client_credentials", issuer: "https://as.example" }), false);
  assert.equal(namesIssuer({ grant: "authorization_code", issuer: "https://as.example" }), true);
});
