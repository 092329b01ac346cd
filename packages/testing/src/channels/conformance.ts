// What every channel adapter must do, as a list of cases that run against a subject: an adapter, its platform, and a person there.
import { inboundCases } from "./inbound-cases.ts";
import { operationCases } from "./operation-cases.ts";
import { outcomeCases } from "./outcome-cases.ts";
import { splitCases } from "./split-cases.ts";
import type { ConformanceCase } from "./subject.ts";
import { textCases } from "./text-cases.ts";

export const conformanceCases: readonly ConformanceCase[] = [
  ...textCases,
  ...splitCases,
  ...outcomeCases,
  ...inboundCases,
  ...operationCases,
];
