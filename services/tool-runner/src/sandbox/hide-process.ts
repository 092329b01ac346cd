// Hides this process's environment and memory from commands that run as the same user in the same container. It contains no settings.
import koffi from "koffi";

/** From linux/prctl.h. */
const PR_GET_DUMPABLE = 3;
const PR_SET_DUMPABLE = 4;

/**
 * Clears the process's dumpable flag: from then on only a process with CAP_SYS_PTRACE may read its environment, memory and descriptors
 * under /proc, or trace it. Programs that it starts have the flag again. False: the system has no such flag, or refused.
 */
export function hideProcess(): boolean {
  try {
    const prctl = koffi
      .load("libc.so.6")
      .func("int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) === 0;
  } catch {
    return false;
  }
}
