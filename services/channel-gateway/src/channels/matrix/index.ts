// The entry point of the Matrix adapter.
import { matrixChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createMatrix } from "./adapter.ts";

export { createMatrix };

export const createAdapter = adapterOf(matrixChannel, (account, settings, secrets) =>
  createMatrix(account, settings, secrets["token_env"] ?? ""),
);
