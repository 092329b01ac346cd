export { fetchBlob, storeBlob } from "./blobs.ts";
export { Bus, connectBus, type BusOptions } from "./bus.ts";
export type { BusLog } from "./connect.ts";
export { maxPayloadBytes } from "./envelope.ts";
export type { RequestOptions, Served, SubjectParams } from "./request-options.ts";
export { truncateContent, maxResultBytesFor } from "./fit-content.ts";
export { parseBusUrl, type BusServers } from "./servers.ts";
export { explainLinkFailure, readTlsFiles, type TlsFiles, type TlsMaterial } from "./tls.ts";
export { activeTrace, failSpan, inSpan, linkTrace } from "./spans.ts";
