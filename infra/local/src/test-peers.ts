// The programs that only tests run: servers and clients of chat platforms. `npm test` fetches them before the tests start; a test whose
// program is missing is skipped.

/** Programs of this machine's Debian suite, and their packages. */
export const TEST_PROGRAMS = { bwrap: "bubblewrap", inspircd: "inspircd", ii: "ii" };

/** Programs of other Debian suites, by the name of their cache folder. */
export const SUITE_PROGRAMS = {
  synapse: { suite: "sid", packages: ["matrix-synapse", "python3-matrix-nio"] },
} as const;
