// When the certificates that a service reads from files expire, as a metric.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

import type { TlsFiles } from "@parley/bus";

import type { LabelsOf } from "./metric-catalog.ts";
import type { ServiceMetrics } from "./metrics.ts";

const metric = "parley_certificate_expiry_timestamp_seconds";

/** Exports when the first certificate of a link's files expires, read again at each scrape because files are renewed. Without files: nothing. */
export function recordCertificate(
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
