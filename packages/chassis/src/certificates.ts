// A metric with the time at which the TLS certificates of a service expire.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

import type { TlsFiles } from "@parley/bus";

import type { LabelsOf } from "./metric-catalog.ts";
import type { ServiceMetrics } from "./metrics.ts";

const metric = "parley_certificate_expiry_timestamp_seconds";

/**
 * Exports the earliest expiry of the certificates in these files. They are read at each scrape, because they are renewed while the service
 * runs. `link`: the connection that uses them. Without files nothing is exported.
 */
export function exportCertificateExpiry(
  metrics: ServiceMetrics,
  link: LabelsOf<typeof metric>["link"],
  { caFile, certFile }: Pick<TlsFiles, "caFile" | "certFile"> = {},
): void {
  const files = [caFile, certFile].filter((file) => file !== undefined);
  if (files.length === 0) return;
  metrics.collect(metric, () => {
    const expiries = files.flatMap((file) => expiriesIn(readFileSync(file, "utf8")));
    if (expiries.length > 0) metrics.set(metric, { link }, Math.min(...expiries) / 1_000);
  });
}

/** Epoch milliseconds at which each certificate of a PEM text expires. */
function expiriesIn(pem: string): number[] {
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return certificates.map((text) => Date.parse(new X509Certificate(text).validTo));
}
