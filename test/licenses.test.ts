// The licences of the packages that Parley distributes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isAllowed, licensesDocument, shippedPackages } from "../infra/docs/licenses.ts";

const packages = shippedPackages();

test("contains only packages with a licence of the list", () => {
  assert.ok(packages.length > 200, `${packages.length} packages`);
  assert.ok(packages.some(({ name }) => name === "fastify"));
  const refused = packages.filter(({ license }) => !isAllowed(license));
  assert.deepEqual(refused, []);
});

test("matches the generated list in docs/licenses.md", () => {
  const page = readFileSync(new URL("../docs/licenses.md", import.meta.url), "utf8");
  assert.equal(page, licensesDocument(packages), "stale: run npm run docs");
});

test("reads alternatives and combinations of licences", () => {
  for (const expression of ["MIT", "(MIT OR GPL-3.0-only)", "MIT AND ISC", "GPL-2.0-only OR BSD-3-Clause"])
    assert.equal(isAllowed(expression), true, expression);
  for (const expression of ["GPL-3.0-only", "MIT AND LGPL-3.0-only", "SEE LICENSE IN LICENSE.md", "", undefined])
    assert.equal(isAllowed(expression), false, expression);
});
