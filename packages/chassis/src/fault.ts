// Fault points where a test can make the process fail. In production none is armed, and a point costs one comparison.
//
//   FAULT=<point>:<action>      the action runs each time the point is reached
//   FAULT_DIR=<folder>          a file named after the point arms it once; its content is the action
//   actions: kill (SIGKILL), stop (SIGSTOP), block:<ms> (blocks the event loop), throw

import { readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";

let armed: { point: string; action: string } | undefined;
let directory: string | undefined;

export function armFaults(options: { point: string | undefined; directory: string | undefined }): void {
  directory = options.directory;
  const separator = options.point?.indexOf(":") ?? -1;
  armed =
    options.point === undefined || separator < 0
      ? undefined
      : { point: options.point.slice(0, separator), action: options.point.slice(separator + 1) };
}

/** Marks a fault point named `<area>.<before|after>_<what>`. */
export function faultPoint(name: string): void {
  if (armed?.point === name) act(armed.action, name);
  if (directory === undefined) return;
  const action = takeOrder(join(directory, name));
  if (action !== undefined) act(action, name);
}

/** Reads and removes the file; the process that removed it runs the action. */
function takeOrder(path: string): string | undefined {
  try {
    const action = readFileSync(path, "utf8").trim();
    unlinkSync(path);
    return action;
  } catch {
    return undefined;
  }
}

function act(action: string, name: string): void {
  const [verb, argument] = action.split(":");
  switch (verb) {
    case "kill":
      process.kill(process.pid, "SIGKILL");
      break;
    case "stop":
      process.kill(process.pid, "SIGSTOP");
      break;
    case "block":
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(argument));
      break;
    case "throw":
      throw new Error(`fault ${name}`);
    default:
      break;
  }
}
