// What the checks are given.

import type { Answered } from "../cluster/gateway.ts";
import type { HomeView } from "../cluster/home.ts";
import type { StatusAnswer } from "../cluster/shapes.ts";
import type { Io } from "../io.ts";
import type { Finding } from "./finding.ts";

export interface DoctorContext {
  readonly io: Io;
  readonly home: HomeView;
  /** --url was given: the cluster runs somewhere else, and this machine's part of it is not there to be looked at. */
  readonly elsewhere: boolean;
  /** parley.toml, or null. */
  readonly settingsFile: string | null;
  /** Asked once for all checks; throws what the asking threw. */
  status(): Promise<Answered<StatusAnswer>>;
}

export interface Check {
  readonly id: string;
  /** May throw: that is then the finding. */
  readonly run: (context: DoctorContext) => Promise<readonly Finding[]>;
}
