// The input of the checks.

import type { Answered } from "../cluster/gateway.ts";
import type { HomeView } from "../cluster/home.ts";
import type { StatusAnswer } from "../cluster/shapes.ts";
import type { Io } from "../io.ts";
import type { Finding } from "./finding.ts";

export interface DoctorContext {
  readonly io: Io;
  readonly home: HomeView;
  /** --url was given: the cluster runs elsewhere, so local checks do not apply. */
  readonly elsewhere: boolean;
  /** parley.toml, or null. */
  readonly settingsFile: string | null;
  /** Requested once for all checks; rethrows the error of that request. */
  status(): Promise<Answered<StatusAnswer>>;
}

export interface Check {
  readonly id: string;
  /** An error that it throws becomes the finding. */
  readonly run: (context: DoctorContext) => Promise<readonly Finding[]>;
}
