// Which authorization server is taken for the one that the settings name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { issuerProblem, namesIssuer } from "../../src/mcp/oauth/provider.ts";

/** What was found out at an address, where somebody calls himself so. */
const found = (asked: string, issuer: string) => ({
  authorizationServerUrl: asked,
  authorizationServerMetadata: {
    issuer,
    authorization_endpoint: `${asked}/authorize`,
    token_endpoint: `${asked}/token`,
    response_types_supported: ["code"],
  },
});

test("metadata speak for the issuer of the settings where they come from its origin", () => {
  const issuer = "https://as.example/oauth";
  assert.equal(issuerProblem(issuer, found("https://as.example/oauth/", issuer)), undefined);
  assert.equal(issuerProblem(issuer, found("https://as.example/", `${issuer}/`)), undefined);
  assert.equal(issuerProblem("https://as.example", { authorizationServerUrl: "https://as.example/" }), undefined);
});

test("nobody else can call himself so, and no other issuer is gone to", () => {
  const issuer = "https://as.example/oauth";
  assert.match(issuerProblem(issuer, found("https://evil.example/", issuer)) ?? "", /asked at https:\/\/evil\.example/);
  assert.match(issuerProblem(issuer, found("http://as.example/", issuer)) ?? "", /asked at http:/);
  assert.match(issuerProblem(issuer, found("https://as.example/", "https://as.example/other")) ?? "", /wants https/);
});

test("the library's own look at the issuer stands wherever the settings name none", () => {
  assert.equal(namesIssuer({ grant: "authorization_code", issuer: undefined }), false);
  assert.equal(namesIssuer({ grant: "client_credentials", issuer: "https://as.example" }), false);
  assert.equal(namesIssuer({ grant: "authorization_code", issuer: "https://as.example" }), true);
});
